# lagwise_layer(name [TORCH] [UNITY] [UNITY_TESTS] [IN folder] [EXCEPT regex] [DEPENDS layers] [LINKS libraries])
#
# A layer is a folder lagwise/<name>. Its sources become the object library
# layer_<name>; *_test.cpp the test program lagwise_<name>_test; *_bench.cpp the
# micro-benchmarks lagwise_<name>_bench. A folder without sources is passed over.
#
#   TORCH    needs libtorch: left out when LAGWISE_TORCH is off. Its tests and
#            benches link the shared library; those of other layers stay torch-free.
#   UNITY    sources are compiled sixteen at a time, as if they were one file: headers
#            take longer to read than our sources. So no two of them may have file-local
#            names in common.
#   UNITY_TESTS  the same for its tests, eight at a time.
#   DEPENDS  further layers whose objects the tests and benches take.
function(lagwise_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;UNITY;UNITY_TESTS" "IN;EXCEPT" "DEPENDS;LINKS")
  if(arg_TORCH AND NOT LAGWISE_TORCH)
    return()
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/lagwise/${name})
  if(arg_IN)
    set(folder ${PROJECT_SOURCE_DIR}/${arg_IN})
  endif()
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${folder}/*_test.cpp)
  file(GLOB_RECURSE benches CONFIGURE_DEPENDS ${folder}/*_bench.cpp)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(REMOVE_ITEM sources ${tests} ${benches} ${folder}/main.cpp)
  if(arg_EXCEPT)
    list(FILTER sources EXCLUDE REGEX ${arg_EXCEPT})
  endif()

  if(sources)
    add_library(layer_${name} OBJECT ${sources})
    lagwise_compile(layer_${name})
    if(arg_TORCH)  # others include little
      lagwise_precompile(layer_${name} torch)
    endif()
    if(arg_UNITY)
      lagwise_compile_together(layer_${name} 16)
    endif()
    set_target_properties(layer_${name} PROPERTIES LAGWISE_LINKS "${arg_LINKS}")
  endif()
  if(tests AND LAGWISE_BUILD_TESTS)
    lagwise_layer_program(test ${tests})
    lagwise_compile_quickly(lagwise_${name}_test)
    if(arg_UNITY_TESTS)
      lagwise_compile_together(lagwise_${name}_test 8)
    endif()
    target_link_libraries(lagwise_${name}_test PRIVATE GTest::gmock GTest::gtest_main)
    if(arg_TORCH)
      lagwise_precompile(lagwise_${name}_test test_torch)
    else()
      lagwise_precompile(lagwise_${name}_test test)
    endif()
    add_test(NAME ${name} COMMAND lagwise_${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS unit)
  endif()
  if(benches AND LAGWISE_BUILD_BENCHES)
    lagwise_layer_program(bench ${benches})
    target_link_libraries(lagwise_${name}_bench PRIVATE benchmark::benchmark_main)
  endif()
endfunction()

# Headers that most files of a kind include, compiled once: parsing ATen takes eight
# seconds a file, reading it back one and a half. There is one set each for libraries and
# for tests, with and without torch: objects differ in -fPIC and -fPIE, which a precompiled
# header must share. Every file still includes what it uses; `make tidy` reads them without
# these headers and notices where one does not.
set(std_headers <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map>
                <memory> <string> <vector>)
set(torch_headers <ATen/ATen.h> <ATen/Parallel.h>)
set(test_headers <gmock/gmock.h> <gtest/gtest.h>)
function(lagwise_precompile target kind)
  set(holder precompiled_${kind})
  if(NOT TARGET ${holder})
    file(CONFIGURE OUTPUT ${holder}.cpp CONTENT "int main() {}\n")
    if(kind MATCHES "^test")
      add_executable(${holder} EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/${holder}.cpp)
      lagwise_compile_quickly(${holder})
    else()
      add_library(${holder} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${holder}.cpp)
    endif()
    set(headers ${std_headers})
    target_link_libraries(${holder} PRIVATE lagwise_flags)
    if(kind MATCHES "torch")
      target_link_libraries(${holder} PRIVATE torch OpenMP::OpenMP_CXX)
      list(APPEND headers ${torch_headers})
    endif()
    if(kind MATCHES "^test")
      target_link_libraries(${holder} PRIVATE GTest::gmock)
      list(APPEND headers ${test_headers})
    endif()
    target_precompile_headers(${holder} PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${holder})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # ccache asks for it
  endif()
endfunction()

# Reads the headers once for so many sources.
function(lagwise_compile_together target many)
  set_target_properties(${target} PROPERTIES
                        UNITY_BUILD ${LAGWISE_UNITY} UNITY_BUILD_BATCH_SIZE ${many})
  if(LAGWISE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC inlines more in so long a file, and then warns of a std::variant's unused
    # bytes; the presets that compile file by file keep the warning.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
endfunction()

# Half of what is compiled are tests, which run for seconds: -O1 saves a quarter of that half.
function(lagwise_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Inside lagwise_layer: the program lagwise_<name>_<kind>.
macro(lagwise_layer_program kind)
  set(program lagwise_${name}_${kind})
  add_executable(${program} ${ARGN})
  lagwise_compile(${program})
  target_link_libraries(${program} PRIVATE hwy::hwy)  # to choose SIMD targets
  lagwise_take(${program} ${arg_DEPENDS})
  if(arg_TORCH)
    target_link_libraries(${program} PRIVATE lagwise)
  endif()
  if(NOT arg_TORCH OR name MATCHES "^(cli|bench)$")  # not in the library
    lagwise_take(${program} ${name})
  endif()
endmacro()

# Inside lagwise_layer: how a target of this layer is compiled.
macro(lagwise_compile target)
  target_link_libraries(${target} PRIVATE lagwise_flags ${arg_LINKS})
  if(arg_TORCH)
    target_link_libraries(${target} PRIVATE torch OpenMP::OpenMP_CXX)
    set_target_properties(${target} PROPERTIES JOB_POOL_COMPILE torch)
  endif()
endmacro()

# Puts the objects of layers, and what they link, into a target.
function(lagwise_take target)
  foreach(layer IN LISTS ARGN)
    if(TARGET layer_${layer})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:layer_${layer}>)
      get_target_property(links layer_${layer} LAGWISE_LINKS)
      target_link_libraries(${target} PRIVATE ${links})
    endif()
  endforeach()
endfunction()

# Gives layer_<name> the texts of lagwise/report/page: see cmake/page.cmake.
function(lagwise_page name)
  set(folder ${PROJECT_SOURCE_DIR}/lagwise/report/page)
  set(script ${PROJECT_SOURCE_DIR}/cmake/page.cmake)
  set(made ${PROJECT_BINARY_DIR}/page_files.cpp)
  file(GLOB parts CONFIGURE_DEPENDS ${folder}/*.html ${folder}/*.css ${folder}/*.js)
  add_custom_command(OUTPUT ${made}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUT=${made} -P ${script}
    DEPENDS ${parts} ${script} VERBATIM)
  target_sources(layer_${name} PRIVATE ${made})
endfunction()
