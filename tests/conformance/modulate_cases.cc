#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {

std::vector<Wide> forward(const RefArgs& args) {
  const Wide &in = args.inputs[0], &scale = args.inputs[1], &shift = args.inputs[2];
  Wide y = args.output(0);
  for (size_t place = 0; place < y.data.size(); ++place) {
    const size_t at = table_place(args, in.shape, scale.shape, 3, place);
    y.data[place] = in.data[place] * (1 + scale.data[at]) + shift.data[at];
    y.magnitude.push_back(std::fabs(in.data[place]) * (1 + std::fabs(scale.data[at])) +
                          std::fabs(shift.data[at]));
  }
  return {y};
}

std::vector<Wide> backward(const RefArgs& args) {
  const Wide &dy = args.inputs[0], &in = args.inputs[1], &scale = args.inputs[2];
  Wide dx = args.output(0), dscale = args.output(1), dshift = args.output(2);
  dscale.magnitude.assign(dscale.data.size(), 0);
  dshift.magnitude.assign(dshift.data.size(), 0);
  for (size_t place = 0; place < dx.data.size(); ++place) {
    const size_t at = table_place(args, in.shape, scale.shape, 3, place);
    const double g = dy.data[place], through = g * in.data[place];
    dx.data[place] = g * (1 + scale.data[at]);
    dx.magnitude.push_back(std::fabs(g) * (1 + std::fabs(scale.data[at])));
    dscale.data[at] += through;
    dscale.magnitude[at] += std::fabs(through);
    dshift.data[at] += g;
    dshift.magnitude[at] += std::fabs(g);
  }
  return {dx, dscale, dshift};
}

}  // namespace

void modulate_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t t, Input index) {
    const Shape table{shape[0], t, shape[2]};
    const auto length = static_cast<double>(shape[1]);
    tables.add({.op = &modulate_op,
                .label = label,
                .inputs = {x(shape), stat(table), stat(table), index},
                .errors = {elementwise(4)},
                .reference = forward});
    tables.add({.op = &modulate_grad_op,
                .label = label,
                .inputs = {x(shape), x(shape), stat(table), index},
                .errors = {elementwise(4), reduction(length), reduction(length)},
                .reference = backward});
  };
  with("one", Shape{1, 1, 1}, 1, runs(1, 1));
  with("runs", Shape{2, 9, 31}, 3, runs(9, 3));
  with("scattered", Shape{3, 70, 33}, 4, below(70, 4));
  with("one_each", Shape{2, 5, 32}, 5, distinct(5, 5));
  with("unused_rows", Shape{1, 4, 3}, 9, runs(4, 2));
  with("no_tokens", Shape{2, 0, 5}, 3, runs(0, 3));
  with("large", Shape{2, 200, 193}, 5, runs(200, 5));
  const TensorType in{DType::kF32, Shape{2, 4, 3}}, table{DType::kF32, Shape{2, 5, 3}};
  const TensorType index{DType::kI32, Shape{4}};
  const auto refuse = [&](const char* label, std::vector<TensorType> types) {
    tables.refuse({.op = &modulate_op, .label = label, .inputs = std::move(types)});
  };
  refuse("two_dims", {{DType::kF32, Shape{4, 3}}, table, table, index});
  refuse("other_width", {in, {DType::kF32, Shape{2, 5, 4}}, table, index});
  refuse("other_batch", {in, {DType::kF32, Shape{1, 5, 3}}, {DType::kF32, Shape{1, 5, 3}}, index});
  refuse("bf16_table", {{DType::kBF16, Shape{2, 4, 3}},
                        {DType::kBF16, Shape{2, 5, 3}},
                        {DType::kBF16, Shape{2, 5, 3}},
                        index});
  refuse("short_index", {in, table, table, {DType::kI32, Shape{3}}});
  refuse("wide_index", {in, table, table, {DType::kI64, Shape{4}}});
  refuse("other_shift", {in, table, {DType::kF32, Shape{2, 4, 3}}, index});
}

}  // namespace wam::conformance
