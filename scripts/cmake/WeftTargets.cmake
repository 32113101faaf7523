# SPDX-License-Identifier: GPL-2.0-only
# weft_room, weft_program and weft_tests: how folders become targets.

# Everything that a program or a test links: the object files of all rooms, and what they need from outside. Object
# files are linked whole, so a file whose only effect is to register itself is never dropped.
add_library(weft_rooms INTERFACE)
# What a program that uses the rooms is compiled and linked with, without the rooms' own object files.
add_library(weft_usage INTERFACE)
target_link_libraries(weft_rooms INTERFACE weft_usage)

# weft_batches(COUNT [ACROSS_FOLDERS] SOURCE...): files are compiled together, so many at a time, those of a folder apart
# unless they may be ACROSS_FOLDERS: a local name of a room has to differ from those of the folder that it is in, and from
# no others.
function(weft_batches most)
  cmake_parse_arguments(PARSE_ARGV 1 given ACROSS_FOLDERS "" "")
  set(sources ${given_UNPARSED_ARGUMENTS})
  list(SORT sources)
  set(folder "")
  set(batch 0)
  set(count ${most})
  foreach(source ${sources})
    if(NOT given_ACROSS_FOLDERS)
      get_filename_component(folder ${source} DIRECTORY)
    endif()
    if(count EQUAL most OR NOT folder STREQUAL before)
      math(EXPR batch "${batch} + 1")
      set(count 0)
    endif()
    math(EXPR count "${count} + 1")
    set(before "${folder}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${batch})
  endforeach()
endfunction()

# weft_compile_together(TARGET): in the batches that its sources are in. Most of the time to compile a file goes into its
# headers: with several in one it is a quarter.
function(weft_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${WEFT_UNITY} UNITY_BUILD_MODE GROUP)
  if(WEFT_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # A local name may be that of a constant of another file, and a source file is an included one here.
    target_compile_options(${target} PRIVATE -Wno-shadow -Wshadow=local -Wno-subobject-linkage)
  endif()
endfunction()

# weft_precompile(TARGET): what most of its files include is compiled once. With WEFT_UNITY=OFF every file has to include
# what it needs, and fails if not.
function(weft_precompile target)
  if(NOT WEFT_UNITY OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    return()
  endif()
  get_property(first GLOBAL PROPERTY weft_headers)
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    set_property(GLOBAL PROPERTY weft_headers ${target})
    target_precompile_headers(${target} PRIVATE <fmt/format.h> <fmt/ranges.h> <algorithm> <array> <cmath> <cstdint>
                              <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <sstream> <string>
                              <string_view> <tuple> <unordered_map> <utility> <vector>)
  endif()
endfunction()

# weft_room(NAME [RUNS_ONCE] [BY_HAND] [SEARCHES] [DEPENDS ROOM...] [LIBRARIES TARGET...])
# The *.cpp of src/NAME, or of NAME for the open folders, and of the folders in it become the object library weft_NAME.
# A room without *.cpp is an interface library. main.cpp is left to weft_program. RUNS_ONCE: what it does is done once
# for a run or an operation, not once per packet. BY_HAND: it lays out records in bytes; sanitizers test their alignment.
# SEARCHES: its tests search for minutes at the -Og that other rooms have with sanitizers.
function(weft_room name)
  cmake_parse_arguments(room "RUNS_ONCE;BY_HAND;SEARCHES" "" "DEPENDS;LIBRARIES" ${ARGN})
  set(folder ${CMAKE_SOURCE_DIR}/src/${name})
  if(NOT IS_DIRECTORY ${folder})
    set(folder ${CMAKE_SOURCE_DIR}/${name})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  list(TRANSFORM room_DEPENDS PREPEND weft_)
  if(sources)
    add_library(weft_${name} OBJECT ${sources})
    weft_compile_together(weft_${name})
    weft_batches(12 ${sources})
    if(room_RUNS_ONCE)
      # Most of the time to run it goes elsewhere: Release has it at -O1, which is compiled in half of the time of -O3.
      target_compile_options(weft_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
    if(room_BY_HAND AND WEFT_SANITIZE MATCHES undefined)
      target_compile_options(weft_${name} PRIVATE -fsanitize=alignment)
    endif()
    # GCC 12 at -O3 warns of overflows within precompiled headers that are none.
    if(room_SEARCHES AND WEFT_SANITIZE)
      target_compile_options(weft_${name} PRIVATE -O2) # precompiled headers have -Og
    elseif(room_RUNS_ONCE OR WEFT_SANITIZE)
      weft_precompile(weft_${name})
    endif()
    set(scope PUBLIC)
    target_sources(weft_rooms INTERFACE $<TARGET_OBJECTS:weft_${name}>)
  else()
    add_library(weft_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(weft_${name} ${scope} ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  target_link_libraries(weft_${name} ${scope} ${room_DEPENDS} ${room_LIBRARIES} fmt::fmt)
  # An object library's files do not travel through an interface library.
  target_link_libraries(weft_usage INTERFACE weft_${name})
endfunction()

# weft_program(NAME MAIN): the executable NAME, directly in the build folder.
function(weft_program name main)
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${main})
    message(WARNING "${main} is missing: the program ${name} is not built")
    return()
  endif()
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE weft_rooms)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

include(WeftTests)
