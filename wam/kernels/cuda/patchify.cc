#include "wam/kernels/cuda/edges.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& x = s.inputs[0].shape;
  const cuda::Patches patches{.frames = x[0] * x[1],
                              .height = x[2],
                              .width = x[3],
                              .channels = x[4],
                              .channel_first = s.attrs.text("order") == "channel_first",
                              .from = s.inputs[0].dtype,
                              .to = s.outputs[0].dtype};
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_patchify(patches, io.inputs[0], io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef patchify_cuda;
const KernelDef patchify_cuda = {.op = "patchify", .create = create};

}  // namespace wam
