# SPDX-License-Identifier: GPL-2.0-only
# weft_tests: every tests/**/*_test.{cpp,py,sh} becomes a ctest, without being named anywhere.
#
# Name: the path below tests/ without the ending, such as units/text. Label: the folder for conformance, parallel and
# cli, otherwise unit; scripts carry the label script too. Targets tests_LABEL build all C++ tests of a label.
# A line `MPI ranks: 1 2 4` in the opening comment of a test has it run under mpirun, once per number.
# A line `Time limit: 900 s` there replaces the limit of 300 s. Tests of high limits begin first, so that none is left
# alone at the end.
# A line `Processors: 2` there keeps others away from a test that watches the clock: ctest counts it as so many tests.
# A line `Runs in: full` there leaves the test to `scripts/test --full`, `Runs in: quick` has `scripts/test --quick` run
# it, too: it becomes a label.
# A line `Also in Release: REASON` in a test in C++ has `scripts/test --full` run it without sanitizers, too: label
# release, target tests_release.

# What tests find in their environment: the program, the folders, and an OpenMPI that takes any number of ranks on any
# machine, also as root and beside other tests.
set(WEFT_TEST_ENVIRONMENT
    WEFT=${CMAKE_BINARY_DIR}/weft
    WEFT_SOURCE=${CMAKE_SOURCE_DIR}
    WEFT_BUILD=${CMAKE_BINARY_DIR}
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_hwloc_base_binding_policy=none
    OMPI_MCA_mpi_yield_when_idle=1
    OMPI_MCA_btl_vader_single_copy_mechanism=none
    OMPI_MCA_btl_base_warn_component_unused=0
    OMPI_MCA_pml=ob1 # no search for network cards
    HWLOC_PLUGINS_PATH=/dev/null # nor for graphics cards, for which each process loads X11 and OpenCL
    PYTHONDONTWRITEBYTECODE=1
    # Neither OpenMPI nor ns-3 frees its process-wide tables at exit, so leaks of weft cannot be told from theirs.
    ASAN_OPTIONS=detect_leaks=0
    UBSAN_OPTIONS=print_stacktrace=1)

# weft_add_test(NAME LABELS COMMAND...): one ctest, run in the source folder.
function(weft_add_test name labels)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" ENVIRONMENT "${WEFT_TEST_ENVIRONMENT}" TIMEOUT 300)
endfunction()

# weft_test_label(VARIABLE PATH): the label of a test at PATH below tests/.
function(weft_test_label variable path)
  set(${variable} unit PARENT_SCOPE)
  if(path MATCHES "^(conformance|parallel|cli)/")
    set(${variable} ${CMAKE_MATCH_1} PARENT_SCOPE)
  endif()
endfunction()

# weft_add_test_file(NAME LABELS FILE COMMAND...): the ctests of one file, as its opening comment wants them.
function(weft_add_test_file name labels file)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} remarks LIMIT_INPUT 2000 REGEX "^(//|#) (MPI ranks|Time limit|Processors|Runs in|Also in Release): ")
  set(names ${name})
  if(remarks MATCHES "Runs in: (full|quick)")
    list(APPEND labels ${CMAKE_MATCH_1})
  endif()
  if(remarks MATCHES "Also in Release: ")
    list(APPEND labels release)
  endif()
  string(REGEX MATCH "MPI ranks: ([0-9 ]+)" ranks "${remarks}")
  if(ranks)
    set(names "")
    string(STRIP "${CMAKE_MATCH_1}" ranks)
    string(REPLACE " " ";" ranks ${ranks})
    foreach(count ${ranks})
      # Each with a folder of its own for what OpenMPI removes at its end.
      set(scratch ${CMAKE_BINARY_DIR}/mpi/${name}.${count})
      file(MAKE_DIRECTORY ${scratch})
      weft_add_test(${name}.${count} "${labels}" ${MPIEXEC_EXECUTABLE} --mca orte_tmpdir_base ${scratch} -n ${count} ${ARGN})
      set_tests_properties(${name}.${count} PROPERTIES PROCESSORS ${count})
      list(APPEND names ${name}.${count})
    endforeach()
  else()
    weft_add_test(${name} "${labels}" ${ARGN})
  endif()
  if(remarks MATCHES "Time limit: ([0-9]+) s")
    set_tests_properties(${names} PROPERTIES TIMEOUT ${CMAKE_MATCH_1} COST ${CMAKE_MATCH_1})
  endif()
  if(remarks MATCHES "Processors: ([0-9]+)")
    set_tests_properties(${names} PROPERTIES PROCESSORS ${CMAKE_MATCH_1})
  endif()
  if(WEFT_SANITIZE) # everything is many times slower
    set_tests_properties(${names} PROPERTIES TIMEOUT 1800)
  endif()
endfunction()

# weft_tested: what tests are linked with. With sanitizers that is one library for all tests, because to link everything
# into each takes longer than to run it; the product is linked as its users have it.
function(weft_add_tested)
  if(WEFT_SANITIZE AND NOT WEFT_FUZZ)
    add_library(weft_tested SHARED)
    set_target_properties(weft_tested PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(weft_tested PRIVATE weft_rooms PUBLIC weft_usage)
  else()
    add_library(weft_tested INTERFACE)
    target_link_libraries(weft_tested INTERFACE weft_rooms)
  endif()
endfunction()

# weft_test_program(TARGET FOLDER SOURCE...): an executable in the build folder's tests/FOLDER.
function(weft_test_program target folder)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE weft_tested GTest::gtest)
  # What almost all tests include is compiled once.
  if(TARGET weft_test_main)
    target_precompile_headers(${target} REUSE_FROM weft_test_main)
  endif()
  # Not the tests but the rooms decide how long tests run.
  target_compile_options(${target} PRIVATE ${WEFT_TEST_OPTIONS})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/${folder})
endfunction()

# The tests of a folder and of those in it are one program, from which `--file FOLDER/NAME_test.cpp` chooses those of a
# file. Each file has a
# namespace of its own, because several are compiled together. A file with a main() of its own is a program by itself.
function(weft_cpp_tests)
  weft_add_tested()
  set(tests ${CMAKE_SOURCE_DIR}/tests)
  set(WEFT_TEST_OPTIONS -O1)
  if(WEFT_SANITIZE)
    # The same in objects of a library and of programs, or they could not share precompiled headers.
    set(WEFT_TEST_OPTIONS -Og -fPIE)
    set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
  endif()
  add_library(weft_test_main OBJECT ${tests}/main.cpp)
  target_link_libraries(weft_test_main PRIVATE weft_usage GTest::gtest)
  target_compile_options(weft_test_main PRIVATE ${WEFT_TEST_OPTIONS})
  target_precompile_headers(weft_test_main PRIVATE <gtest/gtest.h> <fmt/format.h> <algorithm> <cmath> <functional> <map>
                            <memory> <optional> <set> <string> <vector>)
  foreach(label unit conformance parallel cli release)
    add_custom_target(tests_${label})
  endforeach()
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${tests} ${tests}/*_test.cpp)
  set(folders "")
  foreach(file ${files})
    string(REGEX REPLACE "_test\\.cpp$" "" name ${file})
    string(REGEX REPLACE "/.*" "" folder ${file})
    weft_test_label(label ${file})
    file(STRINGS ${tests}/${file} main REGEX "^int main\\(")
    file(STRINGS ${tests}/${file} mpi LIMIT_INPUT 2000 REGEX "^// MPI ranks: ")
    if(main)
      string(REPLACE "/" "_" target test_${name})
      weft_test_program(${target} ${folder} ${tests}/${file})
      weft_add_test_file(${name} ${label} ${tests}/${file} $<TARGET_FILE:${target}>)
    else()
      set(target test_${folder})
      if(NOT folder IN_LIST folders)
        list(APPEND folders ${folder})
        weft_test_program(${target} ${folder} $<TARGET_OBJECTS:weft_test_main>)
        weft_compile_together(${target})
      endif()
      list(APPEND tests_of_${folder} ${tests}/${file})
      target_sources(${target} PRIVATE ${tests}/${file})
      set(words --file ${file})
      if(mpi)
        list(APPEND words --mpi)
      endif()
      weft_add_test_file(${name} ${label} ${tests}/${file} $<TARGET_FILE:${target}> ${words})
    endif()
    add_dependencies(tests_${label} ${target})
    file(STRINGS ${tests}/${file} release LIMIT_INPUT 2000 REGEX "^// Also in Release: ")
    if(release)
      add_dependencies(tests_release ${target})
    endif()
  endforeach()
  set(most 6) # what somebody who changes a test waits for
  if(WEFT_SANITIZE)
    set(most 16) # most of the time goes into headers and what each batch makes of their templates
  endif()
  foreach(folder ${folders})
    weft_batches(${most} ACROSS_FOLDERS ${tests_of_${folder}})
  endforeach()
endfunction()

function(weft_script_tests)
  set(tests ${CMAKE_SOURCE_DIR}/tests)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${tests} ${tests}/*_test.py ${tests}/*_test.sh)
  foreach(file ${files})
    string(REGEX REPLACE "_test\\.(py|sh)$" "" name ${file})
    if(TEST ${name})
      set(name ${file}) # a C++ test of the same name is beside it
    endif()
    weft_test_label(label ${file})
    set(interpreter /usr/bin/python3)
    if(file MATCHES "\\.sh$")
      set(interpreter bash)
    endif()
    weft_add_test_file(${name} "${label};script" ${tests}/${file} ${interpreter} ${tests}/${file})
  endforeach()
endfunction()

function(weft_tests)
  weft_cpp_tests()
  weft_script_tests()
  weft_add_test(check/layers "check;script;quick" /usr/bin/python3 scripts/check_layers)
  weft_add_test(check/format "check;script;quick" bash scripts/format --check)
  # Fails if a law does not hold, or if a page of docs/validation promises another verdict or tolerance. Of published
  # measurements all rows that are held to a tolerance run, and those without a verdict that take little time.
  file(GLOB families RELATIVE ${CMAKE_SOURCE_DIR}/validation CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/validation/*/*/check.py)
  list(TRANSFORM families REPLACE "/.*" "/")
  list(REMOVE_DUPLICATES families)
  list(REMOVE_ITEM families published/)
  weft_add_test(validation/laws "validation;script" /usr/bin/python3 scripts/validate --check-docs ${families})
  weft_add_test(validation/published "validation;script;full" /usr/bin/python3 scripts/validate --held --check-docs published/)
  set_tests_properties(validation/laws validation/published PROPERTIES TIMEOUT 1800 COST 1800 PROCESSORS 2)
endfunction()
