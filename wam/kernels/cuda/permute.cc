#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& x = s.inputs[0].shape;
  const std::vector<int64_t>& perm = s.attrs.integers("perm");
  cuda::Permutation p{.ndim = x.ndim(), .count = x.num_elements()};
  int64_t strides[Shape::kMaxDims] = {};
  int64_t stride = 1;
  for (int i = x.ndim() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= x[i];
  }
  for (size_t i = 0; i < perm.size(); ++i) {
    p.size[i] = x[static_cast<int>(perm[i])];
    p.x_stride[i] = strides[perm[i]];
  }
  const int64_t bytes = size_bytes(s.inputs[0].dtype);
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_permute(p, bytes, io.inputs[0], io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef permute_cuda;
const KernelDef permute_cuda = {.op = "permute", .create = create};

}  // namespace wam
