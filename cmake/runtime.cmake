# lagwise::runtime: a trained model without torch, for C (lagwise/runtime/lagwise.h). The
# library, shared and static, holds all it needs and asks for no other: of core, data and
# kernels what the runtime uses, and what stands in for Highway's library.
set(runtime_core noise sampler)
set(runtime_formats atomic_file mapped_file mapped_places safetensors strict_json)
set(runtime_kernels favor feature_map few_rows gelu linear_step rms_norm rotate row_product
                    turn_table wave_row)
list(TRANSFORM runtime_core REPLACE "(.+)" "lagwise/core/\\1.cpp")
list(TRANSFORM runtime_formats REPLACE "(.+)" "lagwise/data/formats/\\1.cpp")
list(JOIN runtime_kernels "|" runtime_kernel_names)

add_library(runtime_parts OBJECT ${runtime_core} ${runtime_formats}
            lagwise/runtime/alone/simd_targets.cpp)
target_link_libraries(runtime_parts PRIVATE lagwise_flags hwy::hwy
                      nlohmann_json::nlohmann_json)
find_package(Threads REQUIRED)
set(exports ${PROJECT_SOURCE_DIR}/lagwise/runtime/alone/lagwise.map)
add_library(lagwise_runtime SHARED)
add_library(lagwise_runtime_static STATIC)
foreach(library lagwise_runtime lagwise_runtime_static)
  target_sources(${library} PRIVATE
    $<TARGET_OBJECTS:layer_runtime> $<TARGET_OBJECTS:runtime_parts>
    "$<FILTER:$<TARGET_OBJECTS:layer_kernels>,INCLUDE,/(${runtime_kernel_names})[.]cpp>")
  target_link_libraries(${library} PRIVATE Threads::Threads)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME lagwise_runtime
                        LINKER_LANGUAGE CXX)
endforeach()
target_link_options(lagwise_runtime PRIVATE -Wl,--gc-sections -Wl,-z,defs -Wl,-Bsymbolic
                    -Wl,--version-script=${exports})
set_target_properties(lagwise_runtime PROPERTIES VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS ${exports})

# lagwise-run: the runtime alone, in a program that runs on a bare Linux.
if(NOT LAGWISE_SANITIZE)
  add_executable(lagwise_run lagwise/cli/alone/lagwise_run.cpp)
  target_link_libraries(lagwise_run PRIVATE lagwise_flags lagwise_runtime_static
                        Threads::Threads)
  target_link_options(lagwise_run PRIVATE -static -Wl,--gc-sections)
  set_target_properties(lagwise_run PROPERTIES OUTPUT_NAME lagwise-run)
endif()
