# wam_arrow: Arrow and Parquet for C++. A system installation is taken where CMake finds one; else
# the headers and libraries inside the pinned pyarrow wheel that tools/setup.sh puts into .venv.
# The wheel's libraries bear only their versioned names and the C++11 string ABI, so they are
# imported by full path. WAM_ARROW=SYSTEM or WHEEL demands one of the two.
set(WAM_ARROW "AUTO" CACHE STRING "Arrow to use: AUTO (system, else wheel), SYSTEM, WHEEL")
set(WAM_VENV "${CMAKE_SOURCE_DIR}/.venv" CACHE PATH "Virtual environment that tools/setup.sh makes")

add_library(wam_arrow INTERFACE)
set(WAM_ARROW_SOURCE "")

if(NOT WAM_ARROW STREQUAL "WHEEL")
  find_package(Arrow CONFIG QUIET)
  find_package(Parquet CONFIG QUIET)
  if(Arrow_FOUND AND Parquet_FOUND AND TARGET Arrow::arrow_shared AND TARGET Parquet::parquet_shared)
    target_link_libraries(wam_arrow INTERFACE Arrow::arrow_shared Parquet::parquet_shared)
    set(WAM_ARROW_SOURCE "system ${Arrow_VERSION}")
  endif()
endif()

if(NOT WAM_ARROW_SOURCE AND NOT WAM_ARROW STREQUAL "SYSTEM")
  file(GLOB wam_pyarrow_dirs LIST_DIRECTORIES true ${WAM_VENV}/lib*/python3*/site-packages/pyarrow)
  foreach(dir IN LISTS wam_pyarrow_dirs)
    file(GLOB arrow_so ${dir}/libarrow.so.*)
    file(GLOB parquet_so ${dir}/libparquet.so.*)
    list(LENGTH arrow_so num_arrow)
    list(LENGTH parquet_so num_parquet)
    if(num_arrow EQUAL 1 AND num_parquet EQUAL 1 AND EXISTS ${dir}/include/arrow/api.h)
      add_library(wam_arrow_core SHARED IMPORTED)
      set_target_properties(wam_arrow_core PROPERTIES IMPORTED_LOCATION ${arrow_so}
                            INTERFACE_INCLUDE_DIRECTORIES ${dir}/include)
      add_library(wam_arrow_parquet SHARED IMPORTED)
      set_target_properties(wam_arrow_parquet PROPERTIES IMPORTED_LOCATION ${parquet_so}
                            INTERFACE_INCLUDE_DIRECTORIES ${dir}/include
                            INTERFACE_LINK_LIBRARIES wam_arrow_core)
      target_link_libraries(wam_arrow INTERFACE wam_arrow_parquet wam_arrow_core)
      string(REGEX REPLACE ".*\\.so\\." "" so_version ${arrow_so})
      set(WAM_ARROW_SOURCE "pyarrow wheel (so version ${so_version})")
      set(WAM_ARROW_LIBRARIES ${arrow_so} ${parquet_so})
      break()
    endif()
  endforeach()
endif()

if(NOT WAM_ARROW_SOURCE)
  message(FATAL_ERROR "[configure] Arrow and Parquet for C++ not found (WAM_ARROW=${WAM_ARROW}; "
                      "looked for a CMake package and for a pyarrow wheel in ${WAM_VENV}). "
                      "Run tools/setup.sh first.")
endif()
message(STATUS "Arrow: ${WAM_ARROW_SOURCE}")
