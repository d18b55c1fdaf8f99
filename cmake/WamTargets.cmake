# wam_library(NAME SOURCES ... DEPS ... PRIVATE_DEPS ...): a static library wam_NAME of one folder.
# wam_test(NAME SOURCES ... DEPS ... LABELS ... TIMEOUT seconds): a GoogleTest binary of that name,
# registered with CTest; label `unit` unless others are given.
# Generated headers go under WAM_GEN_DIR and are included by their path below it.
set(WAM_GEN_DIR ${CMAKE_BINARY_DIR}/gen)

function(wam_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(wam_${name} STATIC ${ARG_SOURCES})
  target_include_directories(wam_${name} PUBLIC ${CMAKE_SOURCE_DIR} ${WAM_GEN_DIR})
  target_link_libraries(wam_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# The launcher is expanded when a test runs, so that WAM_GOLDEN_DIR and WAM_DATA_DIR in the
# environment win over the configured folders without configuring anew.
if(WAM_TESTS)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/run_test.sh.in ${CMAKE_BINARY_DIR}/run_test.sh @ONLY
                 FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endif()

function(wam_test name)
  if(NOT WAM_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${CMAKE_BINARY_DIR}/run_test.sh ${name} $<TARGET_FILE:${name}>)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
