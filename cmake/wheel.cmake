# What goes into a wheel (pyproject.toml asks for the component `python`):
#
#   lagwise/                            python/lagwise, which scikit-build-core copies
#   lagwise/lib/torch-2.13/liblagwise.so   and Debian's libraries that it needs
#   lagwise/bin/lagwise                 the program
#   bin/lagwise                         a script that becomes it
#
# All find each other, and torch beside lagwise in site-packages, by where they lie. The
# C library, libstdc++ and torch with its libgomp are not in the wheel.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_minor ${Torch_VERSION})
set(wheel_library lagwise/lib/torch-${torch_minor})

set_target_properties(lagwise PROPERTIES
  INSTALL_RPATH "$ORIGIN;$ORIGIN/../../../torch/lib")
set_target_properties(lagwise_program PROPERTIES
  INSTALL_RPATH "$ORIGIN/../lib/torch-${torch_minor};$ORIGIN/../../torch/lib")
install(TARGETS lagwise DESTINATION ${wheel_library} COMPONENT python)
install(TARGETS lagwise_program DESTINATION lagwise/bin COMPONENT python)
install(PROGRAMS python/program.py RENAME lagwise
        DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)

# A library is looked for by its SONAME, and a wheel has no links: that is its file name.
find_program(READELF readelf REQUIRED)
get_target_property(highway hwy::hwy LOCATION)
foreach(library ${highway} ${PNG_LIBRARY_RELEASE} ${JPEG_LIBRARY_RELEASE}
        ${ZLIB_LIBRARY_RELEASE})
  execute_process(COMMAND ${READELF} -d ${library} OUTPUT_VARIABLE dynamic
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "soname: \\[([^]]+)\\]" found "${dynamic}")
  file(REAL_PATH ${library} file)
  install(FILES ${file} RENAME ${CMAKE_MATCH_1} DESTINATION ${wheel_library}
          COMPONENT python)
endforeach()
