#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {

std::vector<Wide> forward(const RefArgs& args) {
  const Wide &in = args.inputs[0], &g = args.inputs[1];
  Wide y = args.output(0);
  for (size_t place = 0; place < y.data.size(); ++place) {
    y.data[place] = in.data[place] * g.data[table_place(args, in.shape, g.shape, 2, place)];
  }
  return {y};
}

std::vector<Wide> backward(const RefArgs& args) {
  const Wide &dy = args.inputs[0], &in = args.inputs[1], &g = args.inputs[2];
  Wide dx = args.output(0), dg = args.output(1);
  dg.magnitude.assign(dg.data.size(), 0);
  for (size_t place = 0; place < dx.data.size(); ++place) {
    const size_t at = table_place(args, in.shape, g.shape, 3, place);
    dx.data[place] = dy.data[place] * g.data[at];
    dg.data[at] += dy.data[place] * in.data[place];
    dg.magnitude[at] += std::fabs(dy.data[place] * in.data[place]);
  }
  return {dx, dg};
}

}  // namespace

void gate_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t t, Input index) {
    const Shape table{shape[0], t, shape[2]};
    tables.add({.op = &gate_op,
                .label = label,
                .inputs = {x(shape), stat(table), index},
                .errors = {elementwise(1)},
                .reference = forward});
    tables.add({.op = &gate_grad_op,
                .label = label,
                .inputs = {x(shape), x(shape), stat(table), index},
                .errors = {elementwise(1), reduction(static_cast<double>(shape[1]))},
                .reference = backward});
  };
  with("one", Shape{1, 1, 1}, 1, runs(1, 1));
  with("runs", Shape{2, 9, 31}, 3, runs(9, 3));
  with("scattered", Shape{3, 70, 33}, 4, below(70, 4));
  with("no_tokens", Shape{2, 0, 5}, 3, runs(0, 3));
  with("large", Shape{2, 200, 193}, 5, runs(200, 5));
  const TensorType in{DType::kF32, Shape{2, 4, 3}}, table{DType::kF32, Shape{2, 5, 3}};
  const auto refuse = [&](const char* label, std::vector<TensorType> types) {
    tables.refuse({.op = &gate_op, .label = label, .inputs = std::move(types)});
  };
  refuse("other_width", {in, {DType::kF32, Shape{2, 5, 4}}, {DType::kI32, Shape{4}}});
  refuse("short_index", {in, table, {DType::kI32, Shape{3}}});
  refuse("integers", {{DType::kI32, Shape{2, 4, 3}}, table, {DType::kI32, Shape{4}}});
}

}  // namespace wam::conformance
