#include "wam/kernels/cuda/pictures.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  WAM_CHECK(s.inputs[0].dtype == DType::kF32) << name(s.inputs[0].dtype);
  const Shape &x = s.inputs[0].shape, &y = s.outputs[0].shape;
  int64_t pictures = 1;
  for (int i = 0; i + 3 < x.ndim(); ++i) pictures *= x[i];
  const cuda::ResizeImage args{
      pictures, x[-3], x[-2], x[-1], y[-3], y[-2], s.attrs.text("filter") == "bicubic"};
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_resize_image(args, io.in<float>(0), io.out<float>(0), cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef resize_image_cuda;
const KernelDef resize_image_cuda = {.op = "resize_image", .create = create};

}  // namespace wam
