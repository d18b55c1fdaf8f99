#include "wam/kernels/cuda/pictures.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  WAM_CHECK(s.outputs[0].dtype == DType::kF32) << name(s.outputs[0].dtype);
  const int64_t count = s.outputs[0].shape.num_elements();
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_pixels_to_float(count, io.inputs[0], io.out<float>(0), cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef pixels_to_float_cuda;
const KernelDef pixels_to_float_cuda = {.op = "pixels_to_float", .create = create};

}  // namespace wam
