# SPDX-License-Identifier: GPL-2.0-only
# The git revision for `weft --version`, looked up again at every build. The header changes, and one file is compiled
# anew, only when the revision does.
#
# Included: adds the target weft_revision. As a script (cmake -DSOURCE=... -DHEADER=... -P): writes the header.
if(CMAKE_SCRIPT_MODE_FILE)
  set(revision "")
  if(EXISTS ${SOURCE}/.git)
    execute_process(
      COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
      OUTPUT_VARIABLE revision ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(NOT revision)
    set(revision unknown)
  endif()
  configure_file(${CMAKE_CURRENT_LIST_DIR}/revision.hpp.in ${HEADER} @ONLY)
  return()
endif()

set(WEFT_REVISION_HEADER ${CMAKE_BINARY_DIR}/generated/app/running/revision.hpp)
add_custom_target(weft_revision
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DHEADER=${WEFT_REVISION_HEADER}
          -DWEFT_VERSION=${PROJECT_VERSION} -DNS3_VERSION=${WEFT_NS3_VERSION}
          -P ${CMAKE_CURRENT_LIST_FILE}
  BYPRODUCTS ${WEFT_REVISION_HEADER}
  COMMENT "Looking up the git revision"
  VERBATIM)

add_library(weft_revision_header INTERFACE)
target_include_directories(weft_revision_header INTERFACE ${CMAKE_BINARY_DIR}/generated)
add_dependencies(weft_revision_header weft_revision)
add_library(weft::revision ALIAS weft_revision_header)
