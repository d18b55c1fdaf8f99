#include "wam/ops/average_down.h"

#include "wam/ops/add.h"
#include "wam/ops/op_list.h"
#include "wam/ops/pad_zeros.h"
#include "wam/ops/permute.h"
#include "wam/ops/reshape.h"
#include "wam/ops/rules.h"
#include "wam/ops/scale.h"
#include "wam/ops/sum_dim.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 2);
  rules::floating(args, 0);
  rules::same_dtype(args, 1);
  rules::ndim(args, 0, 5);
  rules::ndim(args, 1, 5);
  const Shape &x = args.inputs[0].shape, &y = args.inputs[1].shape;
  const int64_t ft = args.attrs.integer("ft"), fs = args.attrs.integer("fs");
  rules::demand(ft > 0 && fs > 0 && x[2] % fs == 0 && x[3] % fs == 0 && y[4] > 0 &&
                    x[4] * ft * fs * fs % y[4] == 0,
                args, "sides that fs divides, and a block of x that y's channels divide");
  rules::shape(args, 1, Shape{x[0], (x[1] + ft - 1) / ft, x[2] / fs, x[3] / fs, y[4]});
  return {args.inputs[1]};
}

std::vector<ValueId> decompose(Builder& b, std::span<const ValueId> inputs, const Attrs& attrs) {
  const int64_t ft = attrs.integer("ft"), fs = attrs.integer("fs"), out = b.shape(inputs[1])[4];
  ValueId x = pad_zeros(b, inputs[0], 1, (ft - b.shape(inputs[0])[1] % ft) % ft, 0);
  const Shape s = b.shape(x);
  const int64_t group = s[4] * ft * fs * fs / out;
  x = reshape(b, x, Shape{s[0], s[1] / ft, ft, s[2] / fs, fs, s[3] / fs, fs, s[4]});
  x = permute(b, x, {0, 1, 3, 5, 7, 2, 4, 6});
  const int64_t pixels = s[0] * (s[1] / ft) * (s[2] / fs) * (s[3] / fs);
  x = reshape(b, x, Shape{pixels * out, group});
  if (group > 1) x = scale(b, sum_dim(b, x, 1), 1.0 / static_cast<double>(group));
  return {add(b, inputs[1], reshape(b, x, b.shape(inputs[1])))};
}

}  // namespace

const OpDef average_down_op = {
    .name = "average_down", .infer = infer, .decompose = decompose, .in_place = {{0, 1}}};

ValueId average_down(Builder& b, ValueId x, ValueId y, int64_t ft, int64_t fs) {
  return b.emit1(average_down_op, {x, y}, {{"ft", ft}, {"fs", fs}});
}

}  // namespace wam
