#include "wam/kernels/cuda/support.h"
#include "wam/kernels/cuda/token_norm.h"

namespace wam {
namespace {

struct Parts {
  bool residual, gate, norm, modulate, affine;
  bool index() const { return gate || modulate; }
};

Parts parts_of(const Attrs& attrs) {
  const std::string &residual = attrs.text("residual"), &norm = attrs.text("norm");
  return {residual != "none", residual == "gate", norm != "none", norm == "modulate",
          norm == "affine"};
}

// Rows of the tables; without tables the samples are one long one.
cuda::TokenSizes sizes_of(const Parts& p, const Shape& x, int64_t num_rows) {
  if (!p.index()) return {1, x[0] * x[1], x[2], 1};
  return {x[0], x[1], x[2], num_rows};
}

// Hands out inputs in order; ops/residual_norm.h states it.
class Taker {
 public:
  explicit Taker(std::span<const void* const> inputs) : inputs_(inputs) {}
  const void* take_if(bool present) { return present ? inputs_[at_++] : nullptr; }
  const float* floats_if(bool present) { return static_cast<const float*>(take_if(present)); }

 private:
  std::span<const void* const> inputs_;
  size_t at_ = 0;
};

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Parts p = parts_of(s.attrs);
  const size_t table = p.gate ? 2 : 1 + (p.residual ? 1 : 0);
  const int64_t num_rows = p.index() ? s.inputs[table].shape[1] : 1;
  const cuda::TokenSizes sizes = sizes_of(p, s.inputs[0].shape, num_rows);
  const DType dtype = s.inputs[0].dtype;
  const auto eps = static_cast<float>(s.attrs.real("eps"));
  return cuda::make_kernel([=](const KernelIo& io) {
    Taker in(io.inputs);
    cuda::TokenNormForward args{.sizes = sizes, .eps = eps, .normalize = p.norm};
    args.x = in.take_if(true);
    args.o = in.take_if(p.residual);
    args.gate = in.floats_if(p.gate);
    args.scale = in.floats_if(p.modulate);
    args.shift = in.floats_if(p.modulate);
    args.weight = in.take_if(p.affine);
    args.bias = in.take_if(p.affine);
    args.index = static_cast<const int32_t*>(in.take_if(p.index()));
    if (p.residual) args.x_out = io.outputs[0];
    if (p.norm) {
      args.h = io.outputs[p.residual ? 1 : 0];
      args.stats = io.out<float>(p.residual ? 2 : 1);
    }
    cuda::launch_token_norm_forward(dtype, args, cuda::stream_of(io));
  });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const Parts p = parts_of(s.attrs);
  const bool dx_out = s.attrs.flag("dx_out");
  const size_t table = 3 + (dx_out ? 1 : 0) + (p.gate ? 1 : 0);
  const int64_t num_rows = p.index() ? s.inputs[table].shape[1] : 1;
  const cuda::TokenSizes sizes = sizes_of(p, s.inputs[0].shape, num_rows);
  const DType dtype = s.inputs[0].dtype;
  const bool bias_grad = s.attrs.flag("bias_grad");
  return cuda::make_kernel([=](const KernelIo& io) {
    Taker in(io.inputs);
    cuda::TokenNormBackward args{.sizes = sizes};
    args.dh = in.take_if(true);
    args.dx_out = in.take_if(dx_out);
    args.x = in.take_if(true);
    args.stats = in.floats_if(true);
    args.o = in.take_if(p.gate);
    args.gate = in.floats_if(p.gate);
    args.scale = in.floats_if(p.modulate);
    args.weight = in.take_if(p.affine);
    args.index = static_cast<const int32_t*>(in.take_if(p.index()));
    size_t out = 0;
    args.dx = io.outputs[out++];
    if (p.gate) {
      args.d_o = io.outputs[out++];
      args.dgate = io.out<float>(out++);
    }
    (p.modulate ? args.dscale : args.dweight) = io.out<float>(out++);
    (p.modulate ? args.dshift : args.dbias) = io.out<float>(out++);
    if (bias_grad) args.dcolumn = io.out<float>(out++);
    args.workspace = io.workspace;
    cuda::launch_token_norm_backward(dtype, args, cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef residual_norm_cuda, residual_norm_grad_cuda;
const KernelDef residual_norm_cuda = {.op = "residual_norm", .create = create};
const KernelDef residual_norm_grad_cuda = {.op = "residual_norm_grad", .create = create_grad};

}  // namespace wam
