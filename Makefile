# Each target does all it needs, on a fresh Debian 12: packages, configure, build, run.
BUILD := build/release
STAGE := tools/stage
# Not in the preset: there it would refuse compilers newer than ours.
CONFIGURE := cmake --preset release -DLAGWISE_WERROR=ON -DLAGWISE_SIMD=all
FORMAT := clang-format-14

.PHONY: help
help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 24

.PHONY: setup
setup:  ## install the missing Debian packages that build and test need
	@tools/setup build test

.PHONY: build
build:  ## build/release/lagwise, lagwise-bench and their libraries
	@$(STAGE) packages tools/setup build
	@mkdir -p build
	@$(CONFIGURE) > build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@$(STAGE) build cmake --build $(BUILD) --target lagwise_program lagwise_bench_program lagwise_kernels lagwise_runtime lagwise_runtime_static lagwise_run

.PHONY: demo
demo:  ## five models learn to play, and play on far beyond what they learned: out/demo
	@echo "A fresh machine needs about 10 minutes for packages and build, then some 8 to train."
	@$(STAGE) packages tools/setup build
	@test -f $(BUILD)/build.ninja || $(CONFIGURE) -DLAGWISE_SIMD=native
	@$(STAGE) build cmake --build $(BUILD) --target lagwise_program
	@$(MAKE) --no-print-directory wasm || echo "The page will say what its button Play on needs."
	@tools/demo $(BUILD)/lagwise

.PHONY: wasm
wasm:  ## build/wasm/lagwise.wasm: the runtime for the report page
	@tools/setup wasm
	@$(STAGE) "WebAssembly module" tools/wasm

.PHONY: test
test:  ## the tests and checks of every commit (fresh machine: about half an hour)
	@echo "A fresh machine needs half an hour in all, an older one up to an hour; a second run some minutes."
	@$(STAGE) packages tools/setup build test wasm
	@mkdir -p build
	@$(CONFIGURE) -DLAGWISE_BUILD_TESTS=ON > build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@$(STAGE) build cmake --build $(BUILD)
	@$(STAGE) "WebAssembly module" tools/wasm
	@$(STAGE) "build for the sanitised tests" tools/preset asan
	@find build/asan -name '*.gcda' -delete
	@echo "== tests (seconds per stage stand in the summary, by label)"
	@ctest --test-dir $(BUILD) --output-on-failure -j 2 -LE long
	@echo "== lines that the tests of the torch-free layers ran (no threshold: this table fails nothing)"
	@/usr/bin/python3 tools/coverage.py build/asan || true

.PHONY: test-long
test-long:  ## what make test leaves out: 1,000 kills, clang, races, valgrind, other CPUs; about an hour
	@$(STAGE) packages tools/setup build test
	@mkdir -p build
	@$(CONFIGURE) -DLAGWISE_BUILD_TESTS=ON > build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@$(STAGE) build cmake --build $(BUILD) --target lagwise_program lagwise_run lagwise_runtime
	@ctest --test-dir $(BUILD) --output-on-failure -L long

.PHONY: test-threads
test-threads:  ## races: the runtime's threads and peers between threads under ThreadSanitizer
	@tools/setup build test
	@tools/test_threads

.PHONY: test-python
test-python:  ## the Python package: wheel for torch 2.13 in build/python-venv, its tests
	@$(STAGE) packages tools/setup build test python
	@mkdir -p build
	@tools/test_python

.PHONY: coverage
coverage:  ## which lines of the torch-free layers their tests run, by layer
	@tools/setup build test
	@$(STAGE) "build for the sanitised tests" tools/preset asan
	@find build/asan -name '*.gcda' -delete
	@$(STAGE) "tests that count lines" tools/preset asan --test
	@/usr/bin/python3 tools/coverage.py build/asan

.PHONY: golden
GOLDEN ?= tests/golden
golden:  ## compare with reference tensors: of tests/golden, or of GOLDEN=DIR
	@$(STAGE) packages tools/setup build test
	@mkdir -p build
	@$(CONFIGURE) -DLAGWISE_BUILD_TESTS=ON > build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@$(STAGE) build cmake --build $(BUILD) --target lagwise_golden_test
	@$(BUILD)/lagwise_golden_test "$(GOLDEN)" --not-yet tests/golden/not_yet \
	  --not-supported tests/golden/not_supported

.PHONY: test-sanitize
test-sanitize:  ## the whole suite, torch layers too, under ASan and UBSan
	@tools/setup build test
	@$(STAGE) "sanitised suite" tools/preset sanitize --test

.PHONY: bench
bench:  ## micro-benchmarks of the kernels (Google Benchmark), then lagwise bench
	@tools/setup build test
	@$(CONFIGURE) -DLAGWISE_BUILD_BENCHES=ON
	@cmake --build $(BUILD)
	@for program in $(BUILD)/lagwise_*_bench; do \
	  if [ -x "$$program" ]; then "$$program" || exit 1; fi; done
	@$(BUILD)/lagwise bench linear

.PHONY: fuzz
FUZZ_SECONDS ?= 60
fuzz:  ## every fuzz target for FUZZ_SECONDS=60, from its seeds in fuzz/corpus
	@tools/setup build test
	@tools/preset fuzz
	@/usr/bin/python3 tools/fuzz.py --seconds $(FUZZ_SECONDS)

.PHONY: seeded-bugs
seeded-bugs:  ## plant known bugs one by one and expect the tests to go red
	@tools/setup build test
	@/usr/bin/python3 tools/seeded_bugs.py

.PHONY: format
format:  ## rewrite the sources in house format
	@tools/setup build test
	@/usr/bin/python3 tools/check_format.py --list | xargs -r $(FORMAT) -i

.PHONY: tidy
tidy:  ## clang-tidy on the files changed since the last commit
	@tools/setup build test tidy
	@tools/tidy

.PHONY: tidy-all
tidy-all:  ## clang-tidy on every source: half an hour
	@tools/setup build test tidy
	@tools/tidy --all

.PHONY: clean
clean:  ## remove build/
	@rm -rf build
