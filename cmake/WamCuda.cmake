# WAM_HAVE_CUDA, WAM_HAVE_CUDNN, WAM_HAVE_CUPTI, WAM_HAVE_NCCL and the targets wam_cuda_deps (runtime, cuBLASLt,
# cuDNN), wam_cudnn_frontend (headers), wam_nccl. The targets exist only where the variable says so:
# a folder picks its CUDA sources or its replacement file by `if(WAM_HAVE_CUDA)`, never by #ifdef.
set(WAM_HAVE_CUDA OFF)
set(WAM_HAVE_CUPTI OFF)
set(WAM_HAVE_CUDNN OFF)
set(WAM_HAVE_NCCL OFF)
set_property(CACHE WAM_CUDA PROPERTY STRINGS AUTO ON OFF)
if(WAM_CUDA STREQUAL "OFF")
  message(STATUS "CUDA: left out (WAM_CUDA=OFF)")
  return()
endif()

include(CheckLanguage)
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(WAM_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(WAM_NVCC)
    set(ENV{CUDACXX} ${WAM_NVCC})  # check_language() tries it; a compiler named here it would trust
  endif()
endif()
# Architectures are given by flags below; CMake's own choice would add one to every file.
set(CMAKE_CUDA_ARCHITECTURES OFF)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(WAM_CUDA STREQUAL "ON")
    message(FATAL_ERROR "[configure] WAM_CUDA=ON, but no working nvcc was found. Put nvcc on PATH, "
                        "set CUDACXX, or configure with -DWAM_CUDA=OFF.")
  endif()
  message(STATUS "CUDA: no working nvcc found, left out")
  return()
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

# CMake 3.25 has not yet heard that nvcc speaks C++20.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")
# Machine code for the H100 and H200, and PTX that newer devices and an A100 translate when loaded.
set(WAM_CUDA_GENCODE
    "-gencode=arch=compute_90a,code=sm_90a;-gencode=arch=compute_80,code=compute_80"
    CACHE STRING "nvcc's -gencode options")
set(cuda_flags ${WAM_CUDA_GENCODE} -lineinfo -Xcompiler=-march=${WAM_ARCH}
    -Xcompiler=-ffp-contract=off -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers)
if(WAM_WERROR)
  list(APPEND cuda_flags -Werror=all-warnings -Xcompiler=-Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${cuda_flags}>")

add_library(wam_cuda_deps INTERFACE)
target_link_libraries(wam_cuda_deps INTERFACE CUDA::cudart_static CUDA::cublasLt)
set(WAM_HAVE_CUDA ON)

# usage: wam_find_library(PREFIX header library): PREFIX_INCLUDE and PREFIX_LIBRARY, in the toolkit
# first, so that header and library come from one installation.
function(wam_find_library prefix header library)
  find_path(${prefix}_INCLUDE ${header} HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV ${prefix}_ROOT
            PATH_SUFFIXES include)
  find_library(${prefix}_LIBRARY ${library} HINTS ${CUDAToolkit_LIBRARY_DIR} ENV ${prefix}_ROOT
               PATH_SUFFIXES lib lib64)
endfunction()

wam_find_library(CUDNN cudnn.h cudnn)
file(GLOB wam_frontend_dirs ${WAM_VENV}/lib*/python3*/site-packages/include)
find_path(WAM_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${wam_frontend_dirs}
          ${CUDAToolkit_INCLUDE_DIRS})
if(CUDNN_INCLUDE AND CUDNN_LIBRARY AND WAM_CUDNN_FRONTEND_INCLUDE)
  target_include_directories(wam_cuda_deps SYSTEM INTERFACE ${CUDNN_INCLUDE})
  target_link_libraries(wam_cuda_deps INTERFACE ${CUDNN_LIBRARY})
  add_library(wam_cudnn_frontend INTERFACE)
  target_include_directories(wam_cudnn_frontend SYSTEM INTERFACE ${WAM_CUDNN_FRONTEND_INCLUDE})
  target_link_libraries(wam_cudnn_frontend INTERFACE wam_cuda_deps)
  set(WAM_HAVE_CUDNN ON)
endif()

option(WAM_NCCL "Use NCCL where it is found; OFF: collectives of several GPUs go through host memory" ON)
if(WAM_NCCL)
  wam_find_library(NCCL nccl.h nccl)
endif()
if(WAM_NCCL AND NCCL_INCLUDE AND NCCL_LIBRARY)
  add_library(wam_nccl INTERFACE)
  target_include_directories(wam_nccl SYSTEM INTERFACE ${NCCL_INCLUDE})
  target_link_libraries(wam_nccl INTERFACE ${NCCL_LIBRARY} CUDA::cudart_static)
  set(WAM_HAVE_NCCL ON)
endif()
# Headers alone: the library is loaded by whoever asks for a trace. Its records changed until 13.
find_path(CUPTI_INCLUDE cupti_activity.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
          ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include PATH_SUFFIXES include)
if(CUPTI_INCLUDE AND CUDAToolkit_VERSION_MAJOR EQUAL 13)
  set(WAM_HAVE_CUPTI ON)
endif()
message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION}, cuDNN: ${WAM_HAVE_CUDNN}, "
               "NCCL: ${WAM_HAVE_NCCL}")
