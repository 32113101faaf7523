# SPDX-License-Identifier: GPL-2.0-only
# cmake --install and cpack. PREFIX/bin/weft finds PREFIX/share/weft beside it, so that the tree may be moved; PREFIX/bin
# has the scripts that users of results need, too.
include(GNUInstallDirs)

install(TARGETS weft RUNTIME DESTINATION bin)

# Ready-made files, below the folders that experiments know. Experiments among them find each other.
set(data share/weft)
install(DIRECTORY topologies DESTINATION ${data} FILES_MATCHING PATTERN "*.yaml" PATTERN "*.json")
# One by one: folders of code beside them would come along as empty ones.
file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} workloads/*.yaml workloads/*.json workloads/flow_sizes/*.txt)
foreach(file ${files})
  get_filename_component(folder ${file} DIRECTORY)
  install(FILES ${file} DESTINATION ${data}/${folder})
endforeach()
install(DIRECTORY collectives/selections collectives/kernels collectives/transports collectives/tuners DESTINATION ${data}/collectives)

# Plots, studies, the comparison of results and the module that reads them: in Python, beside the modules that they share.
install(PROGRAMS scripts/plot scripts/same_results scripts/export_torch.py DESTINATION ${data}/scripts)
install(DIRECTORY scripts/plotting scripts/accounting scripts/commands scripts/frameworks scripts/importers scripts/importing
                  scripts/studies scripts/support scripts/weft_commands scripts/weft_results
        DESTINATION ${data}/scripts FILES_MATCHING PATTERN "*.py")
# In /usr this is where Debian's Python looks for modules: `import weft_results` needs no further path there.
install(CODE "
  set(modules \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/python3/dist-packages\")
  file(MAKE_DIRECTORY \"\${modules}\")
  file(CREATE_LINK ../../../${data}/scripts/weft_results \"\${modules}/weft_results\" SYMBOLIC)")
install(DIRECTORY scripts/report_page DESTINATION ${data}/scripts
        FILES_MATCHING PATTERN "*.py" PATTERN "*.js" PATTERN "*.css" PATTERN "*.LICENSE")
foreach(script plot same_results)
  string(REPLACE "_" "-" name ${script})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/install/weft-${name} @ONLY
       CONTENT "#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0-only\nexec \"$(dirname \"$(readlink -f \"$0\")\")/../share/weft/scripts/@script@\" \"$@\"\n")
  install(PROGRAMS ${CMAKE_BINARY_DIR}/install/weft-${name} DESTINATION bin)
endforeach()

install(FILES README.md CHANGELOG.md DESTINATION share/doc/weft)
install(FILES LICENSE DESTINATION share/doc/weft RENAME copyright)
install(DIRECTORY docs DESTINATION share/doc/weft)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_CONTACT "the weft developers <weft@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "packet-level simulator of training clusters")
set(CPACK_PACKAGE_DESCRIPTION "weft simulates training steps of large models on clusters: compute, collectives as NCCL
 runs them, and every packet of theirs on fat-trees, tori, dragonflies and servers, on any number of MPI processes with the
 same results. Results that explain congestion go to HDF5.")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # of the libraries that the program is linked with
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-h5py, python3-matplotlib, python3-numpy, python3-yaml")
include(CPack)
