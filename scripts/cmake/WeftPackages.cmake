# SPDX-License-Identifier: GPL-2.0-only
# Outside libraries. All come from Debian packages, which scripts/setup installs.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(Boost 1.74 REQUIRED COMPONENTS program_options)
find_package(yaml-cpp REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(GTest REQUIRED)
find_package(ZLIB REQUIRED) # traces

# HDF5, as a static library where there is one: the shared one brings forty others along, of a reader of files on web
# servers that weft does not use, and a process takes a quarter of its start to load them.
pkg_check_modules(HDF5 REQUIRED IMPORTED_TARGET hdf5-openmpi)
add_library(weft::hdf5 INTERFACE IMPORTED)
find_library(WEFT_HDF5_STATIC libhdf5.a HINTS ${HDF5_LIBRARY_DIRS} NO_DEFAULT_PATH)
find_library(WEFT_SZIP sz)
if(WEFT_HDF5_STATIC AND WEFT_SZIP AND NOT WEFT_SANITIZE) # with sanitizers tests share a library, which this one cannot be in
  target_include_directories(weft::hdf5 INTERFACE ${HDF5_INCLUDE_DIRS})
  target_link_libraries(weft::hdf5 INTERFACE ${WEFT_HDF5_STATIC} ${WEFT_SZIP} ZLIB::ZLIB MPI::MPI_CXX ${CMAKE_DL_LIBS} m)
else()
  target_link_libraries(weft::hdf5 INTERFACE PkgConfig::HDF5)
endif()

# The same path of libraries in the build folder and installed. CMake would pad the former with a ':', and an empty entry
# is the folder in which the program is started. With sanitizers tests have a library in the build folder.
if(NOT WEFT_SANITIZE)
  set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
endif()

# Only MPI's C interface is used; the C++ bindings were removed from the standard in MPI-3.0.
target_compile_definitions(MPI::MPI_CXX INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)

# ns-3: Debian's CMake package needs files that are not packaged, and the flags of its pkg-config modules contain the
# malformed `-I/usr\;` and paths of libraries that ns-3 uses only inside. So pkg-config tells the version and that the
# modules are there, and of the libraries only those named ns3-* are linked. Headers are in the compiler's own path.
function(weft_ns3_target name)
  set(modules ${ARGN})
  list(TRANSFORM modules PREPEND ns3-)
  pkg_check_modules(NS3_${name} REQUIRED QUIET ${modules})
  set(libraries ${NS3_${name}_LINK_LIBRARIES} ${NS3_${name}_LIBRARIES})
  list(FILTER libraries INCLUDE REGEX "^ns3-|/libns3")
  list(REMOVE_DUPLICATES libraries)
  add_library(weft::ns3-${name} INTERFACE IMPORTED)
  target_link_libraries(weft::ns3-${name} INTERFACE ${libraries})
endfunction()
weft_ns3_target(core core)
weft_ns3_target(network core network)
weft_ns3_target(stack core network point-to-point internet applications)
set(WEFT_NS3_VERSION ${NS3_core_VERSION})

find_package(pugixml REQUIRED)
add_library(weft::pugixml INTERFACE IMPORTED)
target_link_libraries(weft::pugixml INTERFACE pugixml::pugixml)

find_path(METIS_INCLUDE_DIR metis.h REQUIRED)
find_library(METIS_LIBRARY metis REQUIRED)
add_library(weft::metis INTERFACE IMPORTED)
target_include_directories(weft::metis INTERFACE ${METIS_INCLUDE_DIR})
target_link_libraries(weft::metis INTERFACE ${METIS_LIBRARY})
