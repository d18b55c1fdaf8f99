#include "wam/kernels/pack.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  return cuda::make_kernel([stretches = pack_stretches(s)](const KernelIo& io) {
    for (const PackStretch& stretch : stretches) {
      std::byte* to = io.out<std::byte>(0) + stretch.begin;
      const auto bytes = static_cast<size_t>(stretch.bytes);
      if (bytes == 0) continue;
      if (stretch.input < 0) {
        cuda::check(cudaMemsetAsync(to, 0, bytes, cuda::stream_of(io)), "pack");
      } else if (const void* from = io.inputs[static_cast<size_t>(stretch.input)]; from != to) {
        cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda::stream_of(io)),
                    "pack");
      }
    }
  });
}

}  // namespace

extern const KernelDef pack_cuda;
const KernelDef pack_cuda = {.op = "pack", .create = create};

}  // namespace wam
