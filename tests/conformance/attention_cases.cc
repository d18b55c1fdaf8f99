#include <limits>

#include "tests/conformance/twin.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {
namespace {

struct Sizes {
  int64_t batch, queries, keys, heads, d;
  int64_t width() const { return heads * d; }
  Shape q() const { return {batch, queries, width()}; }
  Shape kv() const { return {batch, keys, 2 * width()}; }
  Shape lse() const { return {batch, heads, queries}; }
};

// Random biases in which the first half of the keys but the very first is masked.
Input masked_bias(const Shape& shape) {
  std::vector<double> list;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const int64_t key = i % shape[-1];
    const bool masked = key > 0 && key <= shape[-1] / 2;
    list.push_back(masked ? -std::numeric_limits<double>::infinity()
                          : 0.3 * static_cast<double>(i % 7 - 3));
  }
  return constant(values(shape, list, Role::kStat));
}

void add_sizes(Tables& t, const std::string& label, const Sizes& z, bool key, bool batched,
               bool pair) {
  const Attrs attrs{{"heads", z.heads}, {"scale", 0.4}, {"key_bias", key}, {"pair_bias", pair}};
  std::vector<Input> inputs = {x(z.q()), x(z.kv())};
  if (key) inputs.push_back(masked_bias(batched ? Shape{z.batch, z.keys} : Shape{z.keys}));
  if (pair) inputs.push_back(masked_bias(Shape{z.heads, z.queries, z.keys}));
  // exp turns the scores' rounding, sums of d products, into relative errors of the probabilities.
  const double terms = static_cast<double>(z.keys + 4 * z.d);
  t.add({.op = &attention_op,
         .label = label,
         .attrs = attrs,
         .inputs = inputs,
         .errors = {reduction(terms)},
         .reference = float64_twin(attention_op),
         .differentiable_outputs = {0}});
  // Gradient: do, q, kv, biases are drawn; o and lse belong to them.
  std::vector<Input> grad = {x(z.q()), {}, {}};
  grad.insert(grad.end(), inputs.begin(), inputs.end());
  const auto forward_of = [&](size_t output, Shape shape, Role role) {
    return derived(shape, role, [attrs, inputs, output, label](std::span<const HostTensor>) {
      Case c{.op = &attention_op, .label = label + "_grad", .attrs = attrs, .inputs = inputs};
      return run_cpu(attention_op, attrs, instantiate(c, DType::kF64).inputs)[output];
    });
  };
  // The drawn inputs of this case differ from those of the forward's: take them from the same draw.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input given = inputs[i];
    grad[3 + i] =
        derived(given.shape, given.role, [attrs, inputs, i, label](std::span<const HostTensor>) {
          Case c{.op = &attention_op, .label = label + "_grad", .attrs = attrs, .inputs = inputs};
          return instantiate(c, DType::kF64).inputs[i];
        });
  }
  grad[1] = forward_of(0, z.q(), Role::kFloat);
  grad[2] = forward_of(1, z.lse(), Role::kStat);
  t.add({.op = &attention_grad_op,
         .label = label,
         .attrs = attrs,
         .inputs = grad,
         .errors = {reduction(terms + static_cast<double>(z.queries))},
         .reference = float64_twin(attention_grad_op)});
}

}  // namespace

void attention_cases(Tables& t) {
  add_sizes(t, "one_key", {1, 3, 1, 1, 4}, false, false, false);
  add_sizes(t, "small", {2, 5, 7, 2, 4}, false, false, false);
  add_sizes(t, "tiles", {1, 65, 257, 1, 8}, false, false, false);
  add_sizes(t, "shared_key_bias", {2, 4, 9, 2, 4}, true, false, false);
  add_sizes(t, "own_key_bias", {2, 33, 600, 1, 8}, true, true, false);
  add_sizes(t, "pair_bias", {2, 6, 10, 3, 2}, false, false, true);
  add_sizes(t, "both_biases", {2, 31, 32, 2, 8}, true, true, true);

  const TensorType q{DType::kF32, Shape{2, 3, 8}}, kv{DType::kF32, Shape{2, 5, 16}};
  const auto attrs = [](int64_t heads, bool key, bool pair) {
    return Attrs{{"heads", heads}, {"scale", 1.0}, {"key_bias", key}, {"pair_bias", pair}};
  };
  const auto refuse = [&](const char* label, const Attrs& a, std::vector<TensorType> inputs) {
    t.refuse({.op = &attention_op, .label = label, .attrs = a, .inputs = std::move(inputs)});
  };
  refuse("heads", attrs(3, false, false), {q, kv});
  refuse("no_heads", attrs(0, false, false), {q, kv});
  refuse("width_of_kv", attrs(2, false, false), {q, {DType::kF32, Shape{2, 5, 8}}});
  refuse("batch", attrs(2, false, false), {q, {DType::kF32, Shape{1, 5, 16}}});
  refuse("no_keys", attrs(2, false, false), {q, {DType::kF32, Shape{2, 0, 16}}});
  refuse("missing_bias", attrs(2, true, false), {q, kv});
  refuse("bias_length", attrs(2, true, false), {q, kv, {DType::kF32, Shape{4}}});
  refuse("bias_type", attrs(2, true, false), {q, kv, {DType::kF64, Shape{5}}});
  refuse("pair_shape", attrs(2, false, true), {q, kv, {DType::kF32, Shape{2, 5, 3}}});
  refuse("integers", attrs(2, false, false),
         {{DType::kI32, Shape{2, 3, 8}}, {DType::kI32, Shape{2, 5, 16}}});
}

}  // namespace wam::conformance
