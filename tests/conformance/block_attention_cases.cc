#include "tests/conformance/twin.h"
#include "wam/ops/op_list.h"
#include "wam/tensor/attention_rects.h"

namespace wam::conformance {
namespace {

void add_rects(Tables& t, const std::string& label, int64_t batch, int64_t heads, int64_t d,
               const std::vector<AttentionRect>& rects) {
  const int64_t length = rects.back().q_end, width = heads * d;
  const Attrs attrs{{"heads", heads}, {"scale", 0.4}, {"rects", flatten(rects)}};
  const double terms = static_cast<double>(length + 4 * d);
  t.add({.op = &block_attention_op,
         .label = label,
         .attrs = attrs,
         .inputs = {x(Shape{batch, length, 3 * width})},
         .errors = {reduction(terms)},
         .reference = float64_twin(block_attention_op),
         .differentiable_outputs = {0}});
  // Inputs do, o, lse, qkv: qkv is made from `do`, so that o and lse, which stand before, can be
  // too.
  const Shape out{batch, length, width}, qkv_shape{batch, length, 3 * width};
  const auto qkv = [qkv_shape](const HostTensor& seed) {
    HostTensor made(DType::kF64, qkv_shape);
    const HostTensor wide = seed.to(DType::kF64);
    const auto count = static_cast<size_t>(wide.num_elements());
    for (size_t i = 0; i < static_cast<size_t>(made.num_elements()); ++i) {
      made.as<double>()[i] = wide.as<double>()[(7 * i + 3) % count] * (i % 3 == 0 ? -1 : 1);
    }
    return made.to(rules::grad_dtype(seed.dtype()));
  };
  const auto forward = [=](size_t output, Shape shape, Role role) {
    return derived(shape, role, [=](std::span<const HostTensor> before) {
      const HostTensor input = qkv(before[0]);
      return run_cpu(block_attention_op, attrs, std::span(&input, 1))[output];
    });
  };
  t.add({.op = &block_attention_grad_op,
         .label = label,
         .attrs = attrs,
         .inputs = {x(out), forward(0, out, Role::kFloat),
                    forward(1, Shape{batch, heads, length}, Role::kStat),
                    derived(qkv_shape, Role::kFloat,
                            [=](std::span<const HostTensor> before) { return qkv(before[0]); })},
         .errors = {reduction(2 * terms)},
         .reference = float64_twin(block_attention_grad_op)});
}

}  // namespace

void block_attention_cases(Tables& t) {
  add_rects(t, "one_token", 1, 1, 2, {{0, 1, {{0, 1}}}});
  add_rects(t, "whole", 2, 2, 4, {{0, 7, {{0, 7}}}});
  add_rects(t, "tiles", 1, 1, 8, {{0, 300, {{0, 300}}}});
  add_rects(t, "ranges", 2, 3, 4, {{0, 1, {{4, 5}}}, {1, 3, {{0, 1}, {2, 3}}}, {3, 6, {{1, 6}}}});
  add_rects(t, "causal_blocks", 1, 2, 4,
            {{0, 31, {{0, 31}}}, {31, 63, {{0, 63}}}, {63, 96, {{0, 31}, {40, 96}}}});
  add_rects(t, "wide_head", 2, 1, 136, {{0, 9, {{0, 9}}}});
  add_rects(t, "own_values", 2, 2, 4, {{0, 3, {{0, 3}}}, {3, 4, {{3, 4}}}, {4, 5, {{4, 5}}}});

  const TensorType qkv{DType::kF32, Shape{1, 4, 12}};
  const auto refuse = [&](const char* label, int64_t heads, std::vector<int64_t> rects) {
    t.refuse({.op = &block_attention_op,
              .label = label,
              .attrs = {{"heads", heads}, {"scale", 1.0}, {"rects", std::move(rects)}},
              .inputs = {qkv}});
  };
  refuse("heads", 3, {0, 4, 1, 0, 4});
  refuse("nothing_covered", 2, {});
  refuse("query_missing", 2, {0, 3, 1, 0, 4});
  refuse("too_many_queries", 2, {0, 5, 1, 0, 4});
  refuse("no_keys", 2, {0, 4, 0});
  refuse("key_past_the_end", 2, {0, 4, 1, 0, 5});
  refuse("negative_key", 2, {0, 4, 1, -1, 4});
  refuse("keys_overlap", 2, {0, 4, 2, 0, 2, 1, 4});
  refuse("list_cut", 2, {0, 4, 1, 0});
  refuse("huge_count", 2, {0, 4, int64_t{1} << 62, 0, 4});
}

}  // namespace wam::conformance
