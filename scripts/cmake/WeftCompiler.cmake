# SPDX-License-Identifier: GPL-2.0-only
# Compiler settings that hold for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  # Precompiled headers can be kept if nobody redefines what they define, or looks at the clock.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${WEFT_CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC 12 and 13 report overlapping copies inside std::string's own operator+ (GCC bug 105651).
  add_compile_options(-Wno-restrict)
endif()
if(WEFT_WERROR)
  add_compile_options(-Werror)
endif()

find_program(WEFT_LLD ld.lld)
if(WEFT_LLD) # links a program in a fifth of the time
  add_link_options(-fuse-ld=lld)
endif()

# Results must be the same on every machine: no fused multiply-add where the source has two operations.
add_compile_options(-ffp-contract=off)
if(WEFT_NATIVE)
  add_compile_options(-march=native)
endif()

if(WEFT_LTO)
  include(CheckIPOSupported)
  check_ipo_supported()
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()

if(WEFT_SANITIZE)
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # AddressSanitizer stops at null pointers that are used, and at accesses beyond objects, too; testing for these again takes
  # a quarter of the compile time. Alignment is tested where memory is laid out by hand (weft_room: BY_HAND).
  add_compile_options(-fno-sanitize=null,object-size,pointer-overflow,alignment)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${WEFT_SANITIZE})
  # Reports name functions and lines. All that debuggers can be told makes 340 MB of every test.
  set(CMAKE_CXX_FLAGS_DEBUG "-Og -g1") # compiles in four fifths of the time of -O1
  set(CMAKE_POSITION_INDEPENDENT_CODE ON) # tests share a library, see WeftTests
endif()

if(WEFT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "WEFT_FUZZ needs libFuzzer, which is part of clang; use -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # Clang 14 cannot compile coroutines with the check of function pointers.
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize=function)
endif()
