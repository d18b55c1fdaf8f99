# Shortcuts; every target may be run again at any time and does only what is left to do.
# Options: JOBS=n, CMAKE_FLAGS="-DWAM_CUDA=OFF ...", TEST_FLAGS="-R name -L label -j1 ...",
# DEMO_FLAGS="...", and WAM_GOLDEN_DIR / WAM_DATA_DIR in the environment for tests on other files.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

JOBS ?= $(shell nproc)
CMAKE_FLAGS ?=
TEST_FLAGS ?=
DEMO_FLAGS ?=
say = @printf '== %s\n'

.PHONY: help setup configure build test golden demo asan tsan cuda format tidy clean distclean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup:  ## install what is missing (apt packages, Arrow)
	$(say) 'set-up'
	@tools/setup.sh

configure: setup
	$(say) 'configure build/'
	@cmake -S . -B build -G Ninja -DWAM_TESTS=ON $(CMAKE_FLAGS)

build: configure  ## build the binary: build/wam
	$(say) 'build build/wam'
	@cmake --build build -j $(JOBS) --target wam

test: configure  ## build everything and run every test
	$(say) 'build everything'
	@cmake --build build -j $(JOBS)
	$(say) 'test'
	@python3 tools/run_tests.py build $(TEST_FLAGS)

golden: configure  ## the tests against golden files alone (WAM_GOLDEN_DIR names their folder)
	$(say) 'build everything'
	@cmake --build build -j $(JOBS)
	$(say) 'golden tests'
	@python3 tools/run_tests.py build -L golden $(TEST_FLAGS)

demo: build  ## collect, train and evaluate on the built-in robot world; results in runs/demo
	$(say) 'demo'
	@build/wam demo $(DEMO_FLAGS)

asan: setup  ## unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(say) 'configure, build and test with -fsanitize=address,undefined'
	@cmake --preset cpu-asan $(CMAKE_FLAGS)
	@cmake --build --preset cpu-asan -j $(JOBS)
	@python3 tools/run_tests.py build-cpu-asan -L unit $(TEST_FLAGS)

tsan: setup  ## unit tests under ThreadSanitizer
	$(say) 'configure, build and test with -fsanitize=thread'
	@cmake --preset cpu-tsan $(CMAKE_FLAGS)
	@cmake --build --preset cpu-tsan -j $(JOBS)
	@python3 tools/run_tests.py build-cpu-tsan -L unit $(TEST_FLAGS)

cuda: setup  ## build with CUDA demanded, in build-cuda/ (needs nvcc, not a GPU)
	$(say) 'configure and build build-cuda/'
	@cmake --preset cuda $(CMAKE_FLAGS)
	@cmake --build --preset cuda -j $(JOBS)
	$(say) 'on a machine with a GPU, test with: tools/run_tests.py build-cuda'

format:  ## clang-format over the sources that git knows
	@git ls-files '*.h' '*.cc' '*.cu' '*.cuh' | xargs clang-format -i

tidy: configure  ## clang-tidy over the sources that git knows
	@git ls-files 'wam/*.cc' | grep -v _test.cc | xargs clang-tidy -p build --quiet

clean:  ## remove the build trees
	rm -rf build build-*

distclean: clean  ## remove the build trees and what the set-up put into this folder
	rm -rf .venv .deps
