#include "wam/ops/conv3d.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 3, 4);
  rules::floating(args, 0);
  rules::same_dtype(args, 1);
  rules::same_dtype(args, 2);
  rules::ndim(args, 0, 5);
  rules::ndim(args, 1, 5);
  const Shape &x = args.inputs[0].shape, &w = args.inputs[1].shape;
  rules::demand(w[1] == x[4], args, "x [B, T, H, W, C] and weight [O, C, kt, kh, kw]");
  rules::shape(args, 2, Shape{w[0]});
  const std::vector<int64_t>& stride = args.attrs.integers("stride");
  const std::vector<int64_t>& pad = args.attrs.integers("pad");
  rules::demand(stride.size() == 3 && pad.size() == 6, args, "attributes stride [3] and pad [6]");
  int64_t out[3];
  for (size_t i = 0; i < 3; ++i) {
    const int dim = static_cast<int>(i);
    const int64_t kernel = w[2 + dim], before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t padded = x[1 + dim] + before + after;
    rules::demand(stride[i] > 0 && kernel > 0 && x[1 + dim] > 0 && before >= 0 && after >= 0 &&
                      before < kernel && after < kernel && padded >= kernel,
                  args, "strides above 0, paddings below the kernel, an input it fits into");
    out[i] = (padded - kernel) / stride[i] + 1;
  }
  const Shape y{x[0], out[0], out[1], out[2], w[0]};
  if (args.inputs.size() == 4) {
    rules::same_dtype(args, 3);
    rules::shape(args, 3, y);
  }
  return {{args.inputs[0].dtype, y}};
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  const Shape& w = args.inputs[1].shape;
  OpCost cost;
  cost.flops = 2.0 * static_cast<double>(outputs[0].shape.num_elements()) *
               static_cast<double>(w.num_elements() / std::max<int64_t>(1, w[0]));
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  cost.bytes += static_cast<double>(outputs[0].size_bytes());
  return cost;
}

}  // namespace

const OpDef conv3d_op = {.name = "conv3d", .infer = infer, .cost = cost, .traits = kMatrix};

ValueId conv3d(Builder& b, ValueId x, ValueId weight, ValueId bias, const Conv3d& options,
               ValueId residual) {
  const std::vector<int64_t> stride(options.stride.begin(), options.stride.end());
  const std::vector<int64_t> pad(options.pad.begin(), options.pad.end());
  const Attrs attrs{{"stride", stride}, {"pad", pad}};
  return residual.valid() ? b.emit1(conv3d_op, {x, weight, bias, residual}, attrs)
                          : b.emit1(conv3d_op, {x, weight, bias}, attrs);
}

}  // namespace wam
