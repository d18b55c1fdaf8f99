# Options of the build, each with its reason.
option(WAM_TESTS "Build the tests" ON)
option(WAM_WERROR "Treat warnings as errors" ON)
set(WAM_CUDA "AUTO" CACHE STRING "AUTO: use CUDA where nvcc is found; ON: demand it; OFF: leave it out")
# AVX2 + FMA is what every machine with an H100 has; override for older test machines.
set(WAM_ARCH "x86-64-v3" CACHE STRING "Value of -march for host code")
# Tests skip aloud what these folders lack; environment variables of the same names win.
set(WAM_GOLDEN_DIR "${CMAKE_SOURCE_DIR}/../shared/golden" CACHE PATH "Golden files for the tests")
set(WAM_DATA_DIR "${CMAKE_SOURCE_DIR}/../shared/data" CACHE PATH "Real robot data for the tests")
option(WAM_FUZZ "Build the libFuzzer binaries of tests/fuzz (clang only), see tools/fuzz.sh" OFF)
set(WAM_SANITIZE "" CACHE STRING "Value of -fsanitize, e.g. address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# No contraction: a fused op and its decomposition must round alike (docs/numerics.md).
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-march=${WAM_ARCH}>
                    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
if(WAM_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(WAM_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "[configure] WAM_FUZZ=ON needs clang, got ${CMAKE_CXX_COMPILER_ID}. "
                        "Configure with -DCMAKE_CXX_COMPILER=clang++.")
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()
if(WAM_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${WAM_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>
                      # gcc sees uninitialised values in the sanitizers' own instrumentation.
                      $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>>)
  add_link_options(-fsanitize=${WAM_SANITIZE})
endif()
find_program(WAM_CCACHE ccache)
if(WAM_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WAM_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${WAM_CCACHE})
endif()
find_program(WAM_LLD ld.lld)
if(WAM_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=lld)
endif()

# Libraries beside a binary win, so that it can be moved together with them (tools/bundle.sh). Of
# the two kinds of run path only the old one also serves the libraries of libraries.
add_link_options(-Wl,--disable-new-dtags)
list(APPEND CMAKE_BUILD_RPATH "$ORIGIN" "$ORIGIN/lib")
