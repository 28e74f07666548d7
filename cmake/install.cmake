# Three exports, so that parts can be used where there is no torch:
#   find_package(lagwise CONFIG)                      lagwise::lagwise, and both below
#   find_package(lagwise CONFIG COMPONENTS kernels)   lagwise::kernels, lagwise::runtime
#   find_package(lagwise CONFIG COMPONENTS runtime)   lagwise::runtime alone
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lagwise)

add_library(lagwise::kernels ALIAS lagwise_kernels)
set_target_properties(lagwise_kernels PROPERTIES EXPORT_NAME kernels)
target_compile_features(lagwise_kernels PUBLIC cxx_std_20)
target_include_directories(lagwise_kernels INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS lagwise_kernels EXPORT lagwise-kernels)
install(EXPORT lagwise-kernels NAMESPACE lagwise:: DESTINATION ${config_dir})

# lagwise::runtime and lagwise::runtime_static need nothing else.
foreach(library lagwise_runtime lagwise_runtime_static)
  string(REPLACE lagwise_ "" name ${library})
  add_library(lagwise::${name} ALIAS ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${library} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS ${library} EXPORT lagwise-runtime)
endforeach()
install(EXPORT lagwise-runtime NAMESPACE lagwise:: DESTINATION ${config_dir})
install(FILES lagwise/runtime/lagwise.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lagwise/runtime)
if(TARGET lagwise_run)
  install(TARGETS lagwise_run)
endif()

# Programs and libraries find each other wherever the tree is moved.
file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
if(LAGWISE_TORCH)
  add_library(lagwise::lagwise ALIAS lagwise)
  target_compile_features(lagwise PUBLIC cxx_std_20)
  target_include_directories(lagwise INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS lagwise EXPORT lagwise-targets)
  install(EXPORT lagwise-targets NAMESPACE lagwise:: DESTINATION ${config_dir})
  foreach(program lagwise_program lagwise_bench_program)
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
    install(TARGETS ${program})
  endforeach()
  if(LAGWISE_PYTHON)  # its torch stays where it is
    set_target_properties(lagwise lagwise_program lagwise_bench_program PROPERTIES
                          INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
endif()

# The public headers: what a program outside this repository may include.
set(core_headers mat_view version spec nearest noise errors)
list(TRANSFORM core_headers REPLACE "(.+)" "lagwise/core/\\1.h")
file(GLOB kernels_headers CONFIGURE_DEPENDS lagwise/kernels/*.h)
list(FILTER kernels_headers EXCLUDE REGEX "(-inl\\.h|/testing_[a-z_]*\\.h)$")
if(LAGWISE_TORCH)
  set(ops_headers linear_attention exact_attention exact_step toeplitz_linear encoded
                  head_shape parameters torch_names)
  set(encodings_headers encoding)
  set(attention_headers feature_map linear memory_options output_norm kv_cache)
  foreach(layer ops encodings attention)
    list(TRANSFORM ${layer}_headers REPLACE "(.+)" "lagwise/${layer}/\\1.h")
  endforeach()
endif()
foreach(layer core kernels ops encodings attention)
  install(FILES ${${layer}_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lagwise/${layer})
endforeach()

configure_package_config_file(cmake/lagwise-config.cmake.in lagwise-config.cmake
  INSTALL_DESTINATION ${config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(lagwise-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lagwise-config.cmake
        ${PROJECT_BINARY_DIR}/lagwise-config-version.cmake DESTINATION ${config_dir})

# What torch's headers and libraries need beyond /usr, where compilers look anyway.
if(LAGWISE_TORCH AND NOT TORCH_INSTALL_PREFIX STREQUAL /usr)
  set(torch_pc_libs "-L\${torch_prefix}/lib ")
  set(torch_pc_cflags "-isystem \${torch_prefix}/include ")
endif()

# pkg-config: prefix is found from the place of the .pc file itself.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_PREFIX}/${pc_dir} ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
set(packages lagwise-kernels lagwise-runtime)
if(LAGWISE_TORCH)
  list(APPEND packages lagwise)
endif()
foreach(package IN LISTS packages)
  configure_file(cmake/${package}.pc.in ${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${pc_dir})
endforeach()
