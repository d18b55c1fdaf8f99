#include <vector>

#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const auto dim = static_cast<int>(s.attrs.integer("dim"));
  const auto [outer, unit] = cuda::dim_blocks(s.outputs[0], dim);
  std::vector<cuda::PartCopy> launches;
  int64_t at = 0;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    if (i % cuda::PartCopy::kMostParts == 0) launches.emplace_back();
    cuda::PartCopy& parts = launches.back();
    const int64_t bytes = s.inputs[i].shape[dim] * unit;
    parts.copy[parts.num_parts] = {outer, bytes, bytes, s.outputs[0].shape[dim] * unit};
    parts.offset[parts.num_parts++] = at;
    at += bytes;
  }
  return cuda::make_kernel([launches](const KernelIo& io) mutable {
    size_t next = 0;
    for (cuda::PartCopy& parts : launches) {
      for (int i = 0; i < parts.num_parts; ++i) parts.x[i] = io.inputs[next++];
      cuda::launch_copy_parts(parts, io.outputs[0], cuda::stream_of(io));
    }
  });
}

}  // namespace

extern const KernelDef concat_cuda;
const KernelDef concat_cuda = {.op = "concat", .create = create};

}  // namespace wam
