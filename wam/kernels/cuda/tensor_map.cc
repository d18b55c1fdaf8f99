#include "wam/kernels/cuda/tensor_map.h"

#include "wam/kernels/cuda/support.h"

namespace wam::cuda {
namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

// The driver's function, found at run time: the program must start where there is no driver.
EncodeTiled encoder() {
  static const EncodeTiled function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                           cudaEnableDefault, &result),
          "cuTensorMapEncodeTiled");
    WAM_CHECK(result == cudaDriverEntryPointSuccess && found != nullptr)
        << "the driver has no cuTensorMapEncodeTiled";
    return reinterpret_cast<EncodeTiled>(found);
  }();
  return function;
}

}  // namespace

CUtensorMap make_tensor_map(const void* base, const TensorMapSpec& spec) {
  CUtensorMap map;
  cuuint64_t sizes[5], strides[4];
  for (int d = 0; d < spec.dims; ++d) sizes[d] = spec.sizes[d];
  for (int d = 0; d + 1 < spec.dims; ++d) strides[d] = spec.strides[d];
  const CUresult result =
      encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, static_cast<cuuint32_t>(spec.dims),
                const_cast<void*>(base), sizes, strides, spec.box, spec.steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  WAM_CHECK(result == CUDA_SUCCESS)
      << "cuTensorMapEncodeTiled: " << static_cast<int>(result) << " for " << spec.dims << " dims, "
      << spec.sizes[0] << " x " << spec.sizes[1] << " ... at " << base;
  return map;
}

int multiprocessor_count() {
  static const int count = [] {
    int device = 0, number = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, device),
          "multiprocessors");
    return number;
  }();
  return count;
}

}  // namespace wam::cuda
