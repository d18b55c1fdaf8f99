#include "tests/conformance/twin.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {
namespace {

struct Sizes {
  int64_t batch, length, parts, normed, heads, d;
  bool rope;
};

void add_sizes(Tables& t, const std::string& label, const Sizes& z) {
  const int64_t width = z.heads * z.d;
  const Shape shape{z.batch, z.length, z.parts * width};
  std::vector<Input> inputs = {x(shape)};
  for (int64_t i = 0; i < z.normed; ++i) inputs.push_back(x(Shape{width}));
  if (z.rope) inputs.push_back(constant(uniform(Shape{z.length, z.d / 2, 2}, -1, 1, Role::kStat)));
  const Attrs attrs{{"parts", z.parts},
                    {"normed", z.normed},
                    {"rope", z.rope},
                    {"eps", 1e-6},
                    {"heads", z.heads}};
  t.add({.op = &qk_norm_rope_op,
         .label = label,
         .attrs = attrs,
         .inputs = inputs,
         .errors = {reduction(static_cast<double>(width))},
         .reference = float64_twin(qk_norm_rope_op)});
  inputs.insert(inputs.begin(), x(shape));
  const auto terms = static_cast<double>(width), rows = static_cast<double>(z.batch * z.length);
  // dx sums over a row, the weights' gradients over rows.
  t.add({.op = &qk_norm_rope_grad_op,
         .label = label,
         .attrs = attrs,
         .inputs = inputs,
         .errors = {reduction(2 * terms), reduction(terms + rows)},
         .reference = float64_twin(qk_norm_rope_grad_op)});
  Attrs more = attrs;
  more.set("two_grads", true);
  more.set("bias_grad", true);
  inputs.insert(inputs.begin(), x(shape));
  t.add({.op = &qk_norm_rope_grad_op,
         .label = label + "_two_grads_bias",
         .attrs = more,
         .inputs = inputs,
         .errors = {reduction(2 * terms), reduction(2 * terms + rows)},
         .reference = float64_twin(qk_norm_rope_grad_op)});
}

}  // namespace

void qk_norm_rope_cases(Tables& t) {
  add_sizes(t, "self", {2, 5, 3, 2, 2, 4, true});
  add_sizes(t, "self_rows", {1, 130, 3, 2, 3, 16, true});
  add_sizes(t, "cross_query", {2, 33, 1, 1, 2, 8, false});
  add_sizes(t, "cross_keys", {2, 7, 2, 1, 2, 8, false});
  add_sizes(t, "all_parts", {1, 3, 2, 2, 1, 2, true});
  add_sizes(t, "eights", {2, 70, 3, 2, 3, 8, true});
  add_sizes(t, "full_width", {1, 7, 3, 2, 24, 128, true});
  add_sizes(t, "full_keys", {1, 7, 2, 1, 40, 128, false});
  const auto attrs = [](int64_t parts, int64_t normed, bool rope, int64_t heads) {
    return Attrs{
        {"parts", parts}, {"normed", normed}, {"rope", rope}, {"eps", 1e-6}, {"heads", heads}};
  };
  const TensorType in{DType::kF32, Shape{1, 4, 24}}, weight{DType::kF32, Shape{8}};
  const TensorType table{DType::kF32, Shape{4, 2, 2}};
  const auto refuse = [&](const char* label, const Attrs& a, std::vector<TensorType> inputs) {
    t.refuse({.op = &qk_norm_rope_op, .label = label, .attrs = a, .inputs = std::move(inputs)});
  };
  refuse("parts", attrs(5, 1, false, 1), {in, weight});
  refuse("normed_above_parts", attrs(1, 2, false, 1), {in, weight, weight});
  refuse("none_normed", attrs(3, 0, false, 1), {in});
  refuse("weight_width", attrs(3, 1, false, 1), {in, {DType::kF32, Shape{7}}});
  refuse("weight_type", attrs(3, 1, false, 1), {in, {DType::kF64, Shape{8}}});
  refuse("missing_table", attrs(3, 1, true, 2), {in, weight});
  refuse("table_length", attrs(3, 1, true, 2), {in, weight, {DType::kF32, Shape{5, 2, 2}}});
  refuse("odd_head", attrs(3, 1, true, 8), {in, weight, table});
  refuse("negative_parts", attrs(-3, 1, false, 1), {in, weight});
}

}  // namespace wam::conformance
