# DNNL::dnnl without the distribution's package file, which demands OpenCL's headers although
# nothing here includes dnnl_ocl.hpp (the library itself brings the OpenCL loader it needs).
find_path(WAM_DNNL_INCLUDE dnnl.hpp)
find_library(WAM_DNNL_LIBRARY dnnl)
if(NOT WAM_DNNL_INCLUDE OR NOT WAM_DNNL_LIBRARY)
  message(FATAL_ERROR "[configure] oneDNN (dnnl.hpp, libdnnl) not found. Run tools/setup.sh first.")
endif()
add_library(DNNL::dnnl SHARED IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${WAM_DNNL_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${WAM_DNNL_INCLUDE})
