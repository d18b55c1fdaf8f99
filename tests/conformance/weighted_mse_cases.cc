#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {

double weight_of(const RefArgs& args, size_t first, const Index& i) {
  const Wide& weight = args.inputs[first + 2];
  const auto t = static_cast<int64_t>(args.inputs[first + 3].data[static_cast<size_t>(i[1])]);
  return weight.data[flat(weight.shape, {i[0], t})];
}
double mask_of(const RefArgs& args, size_t first, size_t place) {
  return args.inputs.size() == first + 5 ? args.inputs[first + 4].data[place] : 1;
}

std::vector<Wide> forward(const RefArgs& args) {
  const Wide &pred = args.inputs[0], &target = args.inputs[1];
  Wide loss = args.output(0);
  loss.magnitude = {0};
  for_each(pred.shape, [&](const Index& i, size_t place) {
    const double factor =
        args.attrs.real("scale") * weight_of(args, 0, i) * mask_of(args, 0, place);
    const double d = pred.data[place] - target.data[place];
    const double size = std::fabs(pred.data[place]) + std::fabs(target.data[place]);
    loss.data[0] += factor * d * d;
    loss.magnitude[0] += std::fabs(factor) * size * size;
  });
  return {loss};
}

std::vector<Wide> backward(const RefArgs& args) {
  const Wide &pred = args.inputs[1], &target = args.inputs[2];
  Wide dpred = args.output(0);
  dpred.magnitude.resize(dpred.data.size());
  for_each(pred.shape, [&](const Index& i, size_t place) {
    const double factor = 2 * args.inputs[0].data[0] * args.attrs.real("scale") *
                          weight_of(args, 1, i) * mask_of(args, 1, place);
    dpred.data[place] = factor * (pred.data[place] - target.data[place]);
    dpred.magnitude[place] =
        std::fabs(factor) * (std::fabs(pred.data[place]) + std::fabs(target.data[place]));
  });
  return {dpred};
}

Input zero_or_one(const Shape& shape) {
  std::vector<double> list;
  for (int64_t i = 0; i < shape.num_elements(); ++i) list.push_back(i % 3 == 0 ? 0 : 1);
  return constant(values(shape, list, Role::kStat));
}

}  // namespace

void weighted_mse_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t t, Input index, bool mask) {
    std::vector<Input> inputs = {x(shape), constant(stat(shape)),
                                 constant(uniform(Shape{shape[0], t}, 0, 2, Role::kStat)), index};
    if (mask) inputs.push_back(zero_or_one(shape));
    const auto count = static_cast<double>(shape.num_elements());
    const Attrs attrs{{"scale", 1 / std::max(1.0, count)}};
    tables.add({.op = &weighted_mse_op,
                .label = label,
                .attrs = attrs,
                .inputs = inputs,
                .errors = {reduction(static_cast<double>(shape[2]))},
                .reference = forward});
    inputs.insert(inputs.begin(), stat(Shape{}));
    tables.add({.op = &weighted_mse_grad_op,
                .label = label,
                .attrs = attrs,
                .inputs = inputs,
                .errors = {elementwise(6)},
                .reference = backward});
  };
  with("one", Shape{1, 1, 1}, 1, runs(1, 1), false);
  with("video", Shape{2, 9, 31}, 3, runs(9, 3), false);
  with("action", Shape{3, 17, 33}, 4, below(17, 4), true);
  with("none", Shape{2, 0, 3}, 1, runs(0, 1), false);
  with("large", Shape{2, 200, 193}, 5, runs(200, 5), true);
  const TensorType in{DType::kF32, Shape{2, 4, 3}}, weight{DType::kF32, Shape{2, 5}};
  const TensorType index{DType::kI32, Shape{4}};
  const auto refuse = [&](const char* label, std::vector<TensorType> types) {
    tables.refuse({.op = &weighted_mse_op,
                   .label = label,
                   .attrs = {{"scale", 1.0}},
                   .inputs = std::move(types)});
  };
  refuse("other_target", {in, {DType::kF32, Shape{2, 3, 3}}, weight, index});
  refuse("narrow_target", {in, {DType::kBF16, Shape{2, 4, 3}}, weight, index});
  refuse("other_weight", {in, in, {DType::kF32, Shape{3, 5}}, index});
  refuse("short_index", {in, in, weight, {DType::kI32, Shape{5}}});
  refuse("other_mask", {in, in, weight, index, {DType::kF32, Shape{2, 4}}});
}

}  // namespace wam::conformance
