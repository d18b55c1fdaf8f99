#include "wam/models/clip.h"

#include <algorithm>
#include <cmath>

#include "wam/base/error.h"
#include "wam/ops/add.h"
#include "wam/ops/block_attention.h"
#include "wam/ops/cast.h"
#include "wam/ops/gelu_erf.h"
#include "wam/ops/layer_norm.h"
#include "wam/ops/linear.h"
#include "wam/ops/mul.h"
#include "wam/ops/pad_zeros.h"
#include "wam/ops/permute.h"
#include "wam/ops/reshape.h"
#include "wam/ops/resize_image.h"
#include "wam/ops/scale.h"
#include "wam/ops/sub.h"

namespace wam {
namespace {

constexpr double kNormEps = 1e-5;
constexpr double kPixelMean[] = {0.48145466, 0.4578275, 0.40821073};
constexpr double kPixelStd[] = {0.26862954, 0.26130258, 0.27577711};

const ParamInit kXavier{.kind = InitKind::kXavierUniform};
const ParamInit kZeros{.kind = InitKind::kZeros};
const ParamInit kOnes{.kind = InitKind::kOnes};
const ParamInit kSmall{.kind = InitKind::kNormal, .scale = 0.02};

ValueId channel_constant(Builder& b, const double (&values)[3], const std::string& name,
                         DType dtype) {
  HostTensor data(DType::kF64, Shape{3});
  std::ranges::copy(values, data.as<double>().begin());
  return b.graph().add_constant(data.to(dtype), name);
}

class Clip {
 public:
  Clip(ParamUser& params, const ClipConfig& config)
      : params_(params), b_(params.builder()), config_(config) {}

  ValueId run(ValueId pixels) {
    ValueId x = norm("pre_norm", embed(pixels), -1);
    for (int64_t i = 0; i + 1 < config_.layers; ++i) x = block(static_cast<int>(i), x);
    return x;
  }

 private:
  // Patches as a matrix product, the class token in front, positions added.
  ValueId embed(ValueId pixels) {
    const int64_t batch = b_.shape(pixels)[0], side = config_.patches_per_side();
    const int64_t p = config_.patch_size, dim = config_.dim;
    ValueId x = reshape(b_, pixels, Shape{batch, side, p, side, p, 3});
    x = permute(b_, x, {0, 1, 3, 5, 2, 4});
    x = reshape(b_, x, Shape{batch, side * side, 3 * p * p});
    const ValueId weight =
        params_.param("patch_embedding.weight", Shape{dim, 3 * p * p}, Shape{dim, 3, p, p},
                      {InitKind::kXavierUniform, 1, 3 * p * p});
    x = linear(b_, x, weight, {});
    const int64_t tokens = config_.tokens();
    const ValueId cls = params_.param("cls_embedding", Shape{1, dim}, Shape{1, 1, dim}, kSmall);
    const ValueId pos =
        params_.param("pos_embedding", Shape{tokens, dim}, Shape{1, tokens, dim}, kSmall);
    const ValueId table = add(b_, pos, pad_zeros(b_, cls, 0, 0, tokens - 1));
    return add(b_, pad_zeros(b_, x, 1, 1, 0), table);
  }

  ValueId block(int i, ValueId x) {
    const std::string name = "transformer." + std::to_string(i);
    const ScopeGuard scope(b_, {.label = "clip." + name, .block = i});
    x = add(b_, x, attend(name + ".attn", i, norm(name + ".norm1", x, i)));
    ValueId h = norm(name + ".norm2", x, i);
    h = gelu_erf(b_, dense(name + ".mlp.0", h, config_.mlp_ratio * config_.dim, i));
    return add(b_, x, dense(name + ".mlp.2", h, config_.dim, i));
  }

  ValueId attend(const std::string& name, int i, ValueId x) {
    const int64_t tokens = config_.tokens();
    const AttentionRect all[] = {{0, tokens, {{0, tokens}}}};
    const double scale = 1 / std::sqrt(static_cast<double>(config_.dim / config_.heads));
    const ValueId qkv = dense(name + ".to_qkv", x, 3 * config_.dim, i);
    const ValueId out = block_attention(b_, qkv, config_.heads, scale, all).out;
    return dense(name + ".proj", out, config_.dim, i);
  }

  ValueId dense(const std::string& name, ValueId x, int64_t out, int block) {
    const Shape shape{out, b_.shape(x)[-1]};
    const ValueId weight = params_.param(name + ".weight", shape, kXavier, block);
    return linear(b_, x, weight, params_.param(name + ".bias", Shape{out}, kZeros, block));
  }

  ValueId norm(const std::string& name, ValueId x, int block) {
    const Shape shape{config_.dim};
    const ValueId weight = params_.param(name + ".weight", shape, kOnes, block);
    return layer_norm(b_, x, kNormEps, weight, params_.param(name + ".bias", shape, kZeros, block))
        .y;
  }

  ParamUser& params_;
  Builder& b_;
  const ClipConfig& config_;
};

[[noreturn]] void fail(std::string what, std::string got, std::string expected) {
  throw ConfigError({.where = "clip",
                     .what = std::move(what),
                     .got = std::move(got),
                     .expected = std::move(expected),
                     .remedy = "Correct the clip section of the configuration."});
}

void check_divides(const char* what, int64_t whole, int64_t part) {
  if (whole % part == 0) return;
  fail(what, std::to_string(whole) + " / " + std::to_string(part), "a whole number");
}

}  // namespace

void check(const ClipConfig& c) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"image_size", c.image_size}, {"patch_size", c.patch_size}, {"dim", c.dim},
      {"mlp_ratio", c.mlp_ratio},   {"heads", c.heads},           {"layers", c.layers}};
  for (const auto& [name, value] : sizes) {
    if (value <= 0)
      fail(std::string(name) + " is not positive", std::to_string(value), "1 or more");
  }
  check_divides("patch_size does not divide image_size", c.image_size, c.patch_size);
  check_divides("heads do not divide dim", c.dim, c.heads);
}

ValueId clip_preprocess(Builder& b, const ClipConfig& config, ValueId pictures) {
  check(config);
  const ScopeGuard scope(b, {.label = "clip.preprocess"});
  const DType dtype = b.dtype(pictures);
  ValueId x =
      resize_image(b, pictures, config.image_size, config.image_size, ResizeFilter::kBicubic);
  x = sub(b, scale(b, x, 0.5, 0.5), channel_constant(b, kPixelMean, "clip_pixel_mean", dtype));
  double inverse[3];
  for (size_t i = 0; i < 3; ++i) inverse[i] = 1 / kPixelStd[i];
  return mul(b, x, channel_constant(b, inverse, "clip_pixel_inverse_std", dtype));
}

ValueId build_clip(ParamUser& params, const ClipConfig& config, ValueId pixels) {
  check(config);
  Builder& b = params.builder();
  const ScopeGuard scope(b, {.label = "clip"});
  return Clip(params, config).run(cast(b, pixels, params.dtype()));
}

}  // namespace wam
