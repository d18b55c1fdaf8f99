#include "wam/kernels/cuda/edges.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  WAM_CHECK(s.outputs[0].dtype == DType::kF32) << name(s.outputs[0].dtype);
  const int64_t count = s.inputs[0].shape.num_elements(), dim = s.attrs.integer("dim");
  const bool cos_first = s.attrs.text("order") == "cos_sin";
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_timestep_embedding(io.in<float>(0), count, dim, cos_first, io.out<float>(0),
                                    cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef timestep_embedding_cuda;
const KernelDef timestep_embedding_cuda = {.op = "timestep_embedding", .create = create};

}  // namespace wam
