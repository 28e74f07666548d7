# What `ctest` runs besides the unit tests of the layers. Labels name the stages whose
# time ctest sums up: unit, sanitised, fuzzers, check, and long: what `make test` leaves to
# `make test-long`.
find_program(PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)  # Debian's has its torch

function(lagwise_check name label)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 1800)
endfunction()

# Each check of the sources, and the proof that it can fail.
foreach(check layers layout format)
  lagwise_check(${check} check ${PYTHON} tools/check_${check}.py)
  lagwise_check(${check}_can_fail check ${PYTHON} tools/check_${check}.py --self-test)
endforeach()
lagwise_check(planted_bugs check ${PYTHON} tools/seeded_bugs.py --check)
lagwise_check(packages check ${PYTHON} tools/check_packages.py ${PROJECT_BINARY_DIR})
lagwise_check(packages_can_fail check ${PYTHON} tools/check_packages.py --self-test)

# The tables of docs/results.md and their commands.
foreach(flag "" --self-test)
  string(REPLACE "--self-test" "_can_fail" suffix "${flag}")
  lagwise_check(results${suffix} check ${PYTHON} tools/check_results.py
                $<TARGET_FILE:lagwise_program> ${flag})
endforeach()

lagwise_check(install check sh tests/install_test.sh ${PROJECT_BINARY_DIR})
set(python_with_torch ${PYTHON})
if(LAGWISE_PYTHON)
  set(python_with_torch ${LAGWISE_PYTHON})
endif()
lagwise_check(python check ${python_with_torch} tests/python_smoke_test.py)
if(LAGWISE_GLOO)  # several processes, on one host and on two
  lagwise_check(launch check ${PYTHON} tests/launch_test.py $<TARGET_FILE:lagwise_program>)
  lagwise_check(network check ${PYTHON} tests/network_test.py
                $<TARGET_FILE:lagwise_program>)
  set_tests_properties(launch network PROPERTIES PROCESSORS 2)
  set_tests_properties(network PROPERTIES SKIP_RETURN_CODE 77)
endif()
lagwise_check(compare check ${PYTHON} tests/compare_test.py $<TARGET_FILE:lagwise_program>)
lagwise_check(train_recipes check ${PYTHON} tests/train_recipes_test.py
              $<TARGET_FILE:lagwise_program>)
set_tests_properties(python PROPERTIES
  ENVIRONMENT "LAGWISE_LIBRARY=$<TARGET_FILE:lagwise>")

# The page of `lagwise report` in Chromium; its screenshots stay in build/<preset>/browser.
lagwise_check(browser check ${PYTHON} tests/browser/page_test.py $<TARGET_FILE:lagwise_program>
              ${PROJECT_BINARY_DIR}/browser)
# Play on, with the WebAssembly module that `make wasm` builds.
lagwise_check(play_on check ${PYTHON} tests/browser/play_on_test.py
              $<TARGET_FILE:lagwise_program> ${PROJECT_BINARY_DIR}/browser/play_on
              ${PROJECT_SOURCE_DIR}/build/wasm/lagwise.wasm)
set_tests_properties(browser play_on PROPERTIES SKIP_RETURN_CODE 77)

# The torch-free layers once more: under sanitizers, and from another compiler.
lagwise_check(sanitised sanitised tools/preset asan --test)
lagwise_check(fuzzers fuzzers tools/preset fuzz --test)
set_tests_properties(install sanitised fuzzers PROPERTIES PROCESSORS 2)
set_tests_properties(packages PROPERTIES DEPENDS "sanitised;fuzzers")  # reads their trees

# Kills, full memory, files that change: the same check, short and long.
lagwise_check(faults check ${PYTHON} tests/faults_test.py $<TARGET_FILE:lagwise_program> 50)
set_tests_properties(faults PROPERTIES PROCESSORS 2)
lagwise_check(faults_long long ${PYTHON} tests/faults_test.py $<TARGET_FILE:lagwise_program>
              1000)
# A checkpoint that lies: one value for each entry, and all.
lagwise_check(hostile_state check ${PYTHON} tests/hostile_state_test.py
              $<TARGET_FILE:lagwise_program> 1)
lagwise_check(hostile_state_long long ${PYTHON} tests/hostile_state_test.py
              $<TARGET_FILE:lagwise_program>)
# clang compiles most of the torch-free layers for the fuzzers too; this adds the kernels and
# the tests.
lagwise_check(clang long tools/preset clang --test)
lagwise_check(races long tools/test_threads)
lagwise_check(valgrind long ${PYTHON} tests/valgrind_test.py $<TARGET_FILE:lagwise_program>
              $<TARGET_FILE_DIR:lagwise_runtime>)
lagwise_check(cpus long ${PYTHON} tests/cpus_test.py $<TARGET_FILE:lagwise_program>
              $<TARGET_FILE:lagwise_run>)
if(LAGWISE_GLOO)
  lagwise_check(launch_long long ${PYTHON} tests/launch_test.py
                $<TARGET_FILE:lagwise_program> 20)
endif()
set_tests_properties(faults_long PROPERTIES TIMEOUT 7200)
