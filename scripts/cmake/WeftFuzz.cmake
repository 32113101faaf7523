# SPDX-License-Identifier: GPL-2.0-only
# weft_fuzzers: the executables fuzz_NAME, one for each folder tests/fuzz/corpus/NAME. Needs clang (WEFT_FUZZ).
function(weft_fuzzers)
  file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/*)
  add_custom_target(fuzzers)
  # read_experiment() without what runs: of the rooms above those that read files only the sources that it is made of.
  add_library(
    weft_fuzz_experiment OBJECT EXCLUDE_FROM_ALL
    ${CMAKE_SOURCE_DIR}/src/app/running/experiment.cpp ${CMAKE_SOURCE_DIR}/src/app/running/accounting.cpp
    ${CMAKE_SOURCE_DIR}/src/fabric/buffer_sharing/buffer_sharing.cpp
    ${CMAKE_SOURCE_DIR}/src/fabric/buffer_sharing/dynamic_threshold.cpp
    ${CMAKE_SOURCE_DIR}/src/fabric/buffer_sharing/static_threshold.cpp
    ${CMAKE_SOURCE_DIR}/src/fabric/parameters/network_parameters.cpp
    ${CMAKE_SOURCE_DIR}/src/fabric/parameters/switch_parameters.cpp
    ${CMAKE_SOURCE_DIR}/src/fabric/parameters/link_faults.cpp
    ${CMAKE_SOURCE_DIR}/src/fabric/parameters/loggp_parameters.cpp
    ${CMAKE_SOURCE_DIR}/tests/fuzz/no_runs.cpp)
  target_include_directories(weft_fuzz_experiment PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  # Headers only of what is outside.
  target_link_libraries(weft_fuzz_experiment PUBLIC weft::ns3-stack MPI::MPI_CXX Boost::headers fmt::fmt)
  foreach(folder ${folders})
    get_filename_component(name ${folder} NAME)
    add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzzer.cpp)
    target_compile_definitions(fuzz_${name} PRIVATE WEFT_FUZZ_TARGET="${name}")
    target_link_libraries(fuzz_${name} PRIVATE weft_fuzz_experiment)
    # Only the rooms that read files: nothing that needs MPI.
    foreach(room units support graph routing transport schedule nccl collectives topologies workloads)
      target_link_libraries(fuzz_${name} PRIVATE weft_${room})
      get_target_property(type weft_${room} TYPE)
      if(type STREQUAL OBJECT_LIBRARY)
        target_sources(fuzz_${name} PRIVATE $<TARGET_OBJECTS:weft_${room}>)
      endif()
    endforeach()
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers fuzz_${name})
  endforeach()
endfunction()
