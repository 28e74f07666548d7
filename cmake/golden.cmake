# lagwise_golden_test runs the reference tensors of any folder in the formats of
# tests/golden; see tests/golden_runner/main.cpp.
file(GLOB golden_sources CONFIGURE_DEPENDS tests/golden_runner/*.cpp)
add_executable(lagwise_golden_test ${golden_sources})
target_link_libraries(lagwise_golden_test PRIVATE lagwise_flags lagwise
                      OpenMP::OpenMP_CXX nlohmann_json::nlohmann_json)
lagwise_compile_together(lagwise_golden_test 6)
set_target_properties(lagwise_golden_test PROPERTIES JOB_POOL_COMPILE torch)
set(golden ${PROJECT_SOURCE_DIR}/tests/golden)
add_test(NAME golden COMMAND lagwise_golden_test ${golden}
         --not-yet ${golden}/not_yet --not-supported ${golden}/not_supported)
set_tests_properties(golden PROPERTIES LABELS unit)
find_program(PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
add_test(NAME golden_can_fail COMMAND ${PYTHON}
         ${PROJECT_SOURCE_DIR}/tests/golden_can_fail_test.py
         $<TARGET_FILE:lagwise_golden_test>)
set_tests_properties(golden_can_fail PROPERTIES LABELS check)
