#include <vector>

#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

struct Part {
  cuda::BlockCopy copy;
  int64_t offset = 0;
};

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const auto dim = static_cast<int>(s.attrs.integer("dim"));
  const auto [outer, unit] = cuda::dim_blocks(s.outputs[0], dim);
  std::vector<Part> parts;
  int64_t at = 0;
  for (const TensorType& input : s.inputs) {
    const int64_t bytes = input.shape[dim] * unit;
    parts.push_back({{outer, bytes, bytes, s.outputs[0].shape[dim] * unit}, at});
    at += bytes;
  }
  return cuda::make_kernel([parts](const KernelIo& io) {
    for (size_t i = 0; i < parts.size(); ++i) {
      cuda::launch_copy_blocks(parts[i].copy, io.inputs[i], io.out<std::byte>(0) + parts[i].offset,
                               cuda::stream_of(io));
    }
  });
}

}  // namespace

extern const KernelDef concat_cuda;
const KernelDef concat_cuda = {.op = "concat", .create = create};

}  // namespace wam
