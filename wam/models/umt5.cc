#include "wam/models/umt5.h"

#include <algorithm>
#include <cmath>

#include "wam/base/error.h"
#include "wam/ops/add.h"
#include "wam/ops/attention.h"
#include "wam/ops/broadcast_dim.h"
#include "wam/ops/cast.h"
#include "wam/ops/embedding.h"
#include "wam/ops/gelu_tanh.h"
#include "wam/ops/linear.h"
#include "wam/ops/mul.h"
#include "wam/ops/relative_bias.h"
#include "wam/ops/rms_norm.h"
#include "wam/ops/scale.h"

namespace wam {
namespace {

constexpr double kNormEps = 1e-6;
// Added to the scores of padded keys: their probability rounds to 0, and, unlike with -inf, 1 -
// mask times it is 0 for tokens.
constexpr double kMasked = 1e30;

const ParamInit kXavier{.kind = InitKind::kXavierUniform};
const ParamInit kOnes{.kind = InitKind::kOnes};

class Umt5 {
 public:
  Umt5(ParamUser& params, const Umt5Config& config, int64_t length)
      : params_(params),
        b_(params.builder()),
        config_(config),
        length_(length),
        buckets_(buckets()) {}

  ValueId run(ValueId ids, ValueId mask) {
    const ValueId key_bias = scale(b_, mask, kMasked, -kMasked);
    ValueId x = embedding(b_, ids,
                          params_.param("token_embedding.weight", Shape{config_.vocab, config_.dim},
                                        {.kind = InitKind::kNormal, .scale = 1}));
    for (int64_t i = 0; i < config_.layers; ++i) x = block(static_cast<int>(i), x, key_bias);
    return norm("norm", x, -1);
  }

 private:
  ValueId buckets() {
    HostTensor table(DType::kI32, Shape{2 * length_ - 1});
    for (int64_t i = 0; i < table.num_elements(); ++i) {
      table.as<int32_t>()[static_cast<size_t>(i)] =
          relative_bucket(i - (length_ - 1), config_.num_buckets, config_.max_distance);
    }
    return b_.graph().add_constant(table, "umt5_buckets");
  }

  ValueId block(int i, ValueId x, ValueId key_bias) {
    const std::string name = "blocks." + std::to_string(i);
    const ScopeGuard scope(b_, {.label = "umt5." + name, .block = i});
    x = add(b_, x, attend(name, i, norm(name + ".norm1", x, i), key_bias));
    return add(b_, x, feed_forward(name + ".ffn", i, norm(name + ".norm2", x, i)));
  }

  ValueId attend(const std::string& name, int i, ValueId x, ValueId key_bias) {
    const std::string attn = name + ".attn.";
    const Shape shape{config_.dim_attn, config_.dim};
    const std::string kv_names[] = {attn + "k.weight", attn + "v.weight"};
    ParamInit init = kXavier;
    init.fan_in = config_.dim;
    init.fan_out = config_.dim_attn;
    const ValueId kv_weight = params_.stacked(attn + "k+v.weight", kv_names, shape, init, i);
    const ValueId table = params_.param(name + ".pos_embedding.embedding.weight",
                                        Shape{config_.num_buckets, config_.heads},
                                        {.kind = InitKind::kNormal, .scale = 1}, i);
    const ValueId q = linear(b_, x, params_.param(attn + "q.weight", shape, init, i), {});
    const ValueId kv = linear(b_, x, kv_weight, {});
    const ValueId bias = relative_bias(b_, table, buckets_, length_, length_);
    const ValueId out =
        attention(b_, q, kv,
                  {.heads = config_.heads, .scale = 1, .key_bias = key_bias, .pair_bias = bias})
            .out;
    return dense(attn + "o", out, config_.dim, i);
  }

  ValueId feed_forward(const std::string& name, int i, ValueId x) {
    const ValueId gate = gelu_tanh(b_, dense(name + ".gate.0", x, config_.dim_ffn, i));
    const ValueId h = mul(b_, dense(name + ".fc1", x, config_.dim_ffn, i), gate);
    return dense(name + ".fc2", h, config_.dim, i);
  }

  ValueId dense(const std::string& name, ValueId x, int64_t out, int block) {
    const Shape shape{out, b_.shape(x)[-1]};
    return linear(b_, x, params_.param(name + ".weight", shape, kXavier, block), {});
  }

  ValueId norm(const std::string& name, ValueId x, int block) {
    const ValueId weight = params_.param(name + ".weight", Shape{config_.dim}, kOnes, block);
    return rms_norm(b_, x, weight, kNormEps);
  }

  ParamUser& params_;
  Builder& b_;
  const Umt5Config& config_;
  int64_t length_;
  ValueId buckets_;
};

[[noreturn]] void fail(std::string what, std::string got, std::string expected) {
  throw ConfigError({.where = "umt5",
                     .what = std::move(what),
                     .got = std::move(got),
                     .expected = std::move(expected),
                     .remedy = "Correct the text_encoder section of the configuration."});
}

}  // namespace

void check(const Umt5Config& c) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"vocab", c.vocab}, {"dim", c.dim},       {"dim_attn", c.dim_attn},
      {"heads", c.heads}, {"layers", c.layers}, {"dim_ffn", c.dim_ffn}};
  for (const auto& [name, value] : sizes) {
    if (value <= 0)
      fail(std::string(name) + " is not positive", std::to_string(value), "1 or more");
  }
  if (c.dim_attn % c.heads != 0) {
    fail("heads do not divide dim_attn",
         std::to_string(c.dim_attn) + " / " + std::to_string(c.heads), "a whole number");
  }
  if (c.num_buckets < 4 || c.num_buckets % 4 != 0 || c.max_distance <= c.num_buckets / 4) {
    fail("bad relative position buckets",
         std::to_string(c.num_buckets) + " up to distance " + std::to_string(c.max_distance),
         "a multiple of 4 and a distance above a quarter of it");
  }
}

int32_t relative_bucket(int64_t distance, int64_t num_buckets, int64_t max_distance) {
  const int64_t half = num_buckets / 2, exact = half / 2;
  const int64_t size = std::abs(distance), base = distance > 0 ? half : 0;
  if (size < exact) return static_cast<int32_t>(base + size);
  // In float32, as the published encoder computes it: the floor decides at powers of two.
  const float ratio =
      std::log(static_cast<float>(size) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const int64_t above = exact + static_cast<int64_t>(ratio * static_cast<float>(half - exact));
  return static_cast<int32_t>(base + std::min(above, half - 1));
}

Umt5Output build_umt5(ParamUser& params, const Umt5Config& config, ValueId ids, ValueId mask) {
  check(config);
  Builder& b = params.builder();
  const ScopeGuard scope(b, {.label = "umt5"});
  const ValueId hidden = Umt5(params, config, b.shape(ids)[1]).run(ids, mask);
  const ValueId rows = broadcast_dim(b, cast(b, mask, params.dtype()), 2, config.dim);
  return {hidden, mul(b, hidden, rows)};
}

}  // namespace wam
