#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {
namespace {

// Pairs of channels as complex numbers times the table's.
std::vector<Wide> rotate(const RefArgs& args) {
  Wide y = args.output(0);
  y.magnitude.resize(y.data.size());
  const auto d = static_cast<size_t>(y.shape[-1] / args.attrs.integer("heads"));
  const auto width = static_cast<size_t>(y.shape[-1]), length = static_cast<size_t>(y.shape[-2]);
  const double sign = args.attrs.flag("inverse") ? -1 : 1;
  for (size_t i = 0; i < y.data.size(); i += 2) {
    const size_t entry = i / width % length * d + i % width % d;
    const double cos = args.inputs[1].data[entry], sin = sign * args.inputs[1].data[entry + 1];
    const double even = args.inputs[0].data[i], odd = args.inputs[0].data[i + 1];
    y.data[i] = even * cos - odd * sin;
    y.data[i + 1] = even * sin + odd * cos;
    y.magnitude[i] = std::fabs(even * cos) + std::fabs(odd * sin);
    y.magnitude[i + 1] = std::fabs(even * sin) + std::fabs(odd * cos);
  }
  return {y};
}

void add_shape(Tables& t, const std::string& label, const Shape& shape, int64_t heads,
               bool inverse) {
  t.add({.op = &rope_op,
         .label = label,
         .attrs = {{"heads", heads}, {"inverse", inverse}},
         .inputs = {x(shape), constant(uniform(Shape{shape[-2], shape[-1] / heads / 2, 2}, -1, 1,
                                               Role::kStat))},
         .errors = {elementwise(3)},
         .reference = rotate});
}

}  // namespace

void rope_cases(Tables& t) {
  add_shape(t, "one_pair", Shape{1, 1, 2}, 1, false);
  add_shape(t, "heads", Shape{2, 33, 24}, 4, false);
  add_shape(t, "inverse", Shape{2, 5, 24}, 2, true);
  add_shape(t, "empty", Shape{0, 3, 8}, 2, false);
  const TensorType in{DType::kF32, Shape{2, 5, 12}}, table{DType::kF32, Shape{5, 3, 2}};
  const auto refuse = [&](const char* label, int64_t heads, std::vector<TensorType> inputs) {
    t.refuse(
        {.op = &rope_op, .label = label, .attrs = {{"heads", heads}}, .inputs = std::move(inputs)});
  };
  refuse("odd_head", 4, {in, table});
  refuse("length", 2, {in, {DType::kF32, Shape{4, 3, 2}}});
  refuse("table_type", 2, {in, {DType::kF64, Shape{5, 3, 2}}});
  refuse("no_heads", 0, {in, table});
}

}  // namespace wam::conformance
