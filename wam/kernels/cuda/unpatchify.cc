#include "wam/kernels/cuda/edges.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& y = s.outputs[0].shape;
  const cuda::Patches patches{.frames = y[0] * y[1],
                              .height = y[2],
                              .width = y[3],
                              .channels = y[4],
                              .channel_first = s.attrs.text("order") == "channel_first",
                              .from = s.inputs[0].dtype,
                              .to = s.outputs[0].dtype};
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_unpatchify(patches, io.inputs[0], io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef unpatchify_cuda;
const KernelDef unpatchify_cuda = {.op = "unpatchify", .create = create};

}  // namespace wam
