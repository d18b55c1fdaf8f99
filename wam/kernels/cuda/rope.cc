#include "wam/kernels/cuda/qk_rows.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& x = s.inputs[0].shape;
  const DType dtype = s.inputs[0].dtype;
  const int64_t rows = x.num_rows(), length = x[-2], width = x[-1];
  const int64_t heads = s.attrs.integer("heads");
  const bool inverse = s.attrs.flag("inverse");
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_rope(dtype, io.inputs[0], io.in<float>(1), rows, length, width, heads, inverse,
                      io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef rope_cuda;
const KernelDef rope_cuda = {.op = "rope", .create = create};

}  // namespace wam
