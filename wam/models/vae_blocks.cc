#include "wam/models/vae_blocks.h"

#include <algorithm>
#include <cmath>

#include "wam/ops/add.h"
#include "wam/ops/block_attention.h"
#include "wam/ops/channel_norm.h"
#include "wam/ops/conv3d.h"
#include "wam/ops/linear.h"
#include "wam/ops/mul.h"
#include "wam/ops/reshape.h"
#include "wam/ops/slice.h"
#include "wam/ops/sub.h"

namespace wam::vae {
namespace {

// Variance kept from layer to layer, for autoencoders made from a seed.
const ParamInit kFilter{.kind = InitKind::kUniformFanIn, .scale = 1.7320508075688772};
const ParamInit kZeros{.kind = InitKind::kZeros};
const ParamInit kOnes{.kind = InitKind::kOnes};

int64_t channels(ParamUser& params, ValueId x) { return params.builder().shape(x)[-1]; }

// `shape` followed by `count` dims of size 1.
Shape with_ones(const Shape& shape, int count) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.insert(dims.end(), static_cast<size_t>(count), 1);
  return Shape(dims);
}

ValueId bias(ParamUser& params, const std::string& name, int64_t out) {
  return params.param(name + ".bias", Shape{out}, kZeros);
}

ValueId time_weight(ParamUser& params, const std::string& name, int64_t in, int64_t out) {
  return params.param(name + ".weight", Shape{out, in, 3, 1, 1}, kFilter);
}

// A number a channel, as a constant in x's type.
ValueId channel_constant(Builder& b, const std::vector<double>& values, const std::string& name,
                         DType dtype) {
  HostTensor data(DType::kF64, Shape{static_cast<int64_t>(values.size())});
  std::ranges::copy(values, data.as<double>().begin());
  return b.graph().add_constant(data.to(dtype), name);
}

}  // namespace

ValueId causal_conv(ParamUser& params, const std::string& name, ValueId x, int64_t out, int64_t k,
                    ValueId residual) {
  const ValueId weight =
      params.param(name + ".weight", Shape{out, channels(params, x), k, k, k}, kFilter);
  const int64_t half = k / 2;
  return conv3d(params.builder(), x, weight, bias(params, name, out),
                {.pad = {k - 1, 0, half, half, half, half}}, residual);
}

ValueId time_conv(ParamUser& params, const std::string& name, ValueId x, int64_t out,
                  int64_t before, int64_t stride) {
  const ValueId weight = time_weight(params, name, channels(params, x), out);
  return conv3d(params.builder(), x, weight, bias(params, name, out),
                {.stride = {stride, 1, 1}, .pad = {before, 0, 0, 0, 0, 0}});
}

ValueId picture_conv(ParamUser& params, const std::string& name, ValueId x, int64_t out,
                     int64_t stride) {
  const int64_t in = channels(params, x), before = stride == 1 ? 1 : 0;
  const ValueId weight =
      params.param(name + ".weight", Shape{out, in, 1, 3, 3}, Shape{out, in, 3, 3}, kFilter);
  return conv3d(params.builder(), x, weight, bias(params, name, out),
                {.stride = {1, stride, stride}, .pad = {0, 0, before, 1, before, 1}});
}

ValueId pointwise(ParamUser& params, const std::string& name, ValueId x, int64_t out, int stored) {
  const Shape shape{out, channels(params, x)};
  const ValueId weight = params.param(name + ".weight", shape, with_ones(shape, stored), kFilter);
  Builder& b = params.builder();
  // Few terms a sum: a convolution's tiles move the bytes faster than a product's.
  if (params.dtype() == DType::kBF16 && b.shape(x).ndim() == 5) {
    const ValueId filter = reshape(b, weight, with_ones(shape, 3));
    return conv3d(b, x, filter, bias(params, name, out), {});
  }
  return linear(b, x, weight, bias(params, name, out));
}

ValueId norm(ParamUser& params, const std::string& name, ValueId x, bool silu, int stored) {
  const Shape shape{channels(params, x)};
  const ValueId gamma = params.param(name + ".gamma", shape, with_ones(shape, stored), kOnes);
  return channel_norm(params.builder(), x, gamma, silu);
}

ValueId residual_block(ParamUser& params, const std::string& name, ValueId x, int64_t out) {
  const bool same = channels(params, x) == out;
  const ValueId shortcut = same ? x : pointwise(params, name + ".shortcut", x, out);
  ValueId h = norm(params, name + ".residual.0", x, /*silu=*/true);
  h = causal_conv(params, name + ".residual.2", h, out);
  h = norm(params, name + ".residual.3", h, /*silu=*/true);
  // In float32 the sum is an op of its own, as in the published code.
  if (params.dtype() == DType::kBF16) {
    return causal_conv(params, name + ".residual.6", h, out, /*k=*/3, shortcut);
  }
  h = causal_conv(params, name + ".residual.6", h, out);
  return add(params.builder(), h, shortcut);
}

ValueId frame_attention(ParamUser& params, const std::string& name, ValueId x) {
  Builder& b = params.builder();
  const Shape shape = b.shape(x);
  const int64_t pixels = shape[2] * shape[3], width = shape[4];
  const ValueId normed = norm(params, name + ".norm", x, /*silu=*/false, /*stored=*/2);
  const ValueId rows = reshape(b, normed, Shape{shape[0] * shape[1], pixels, width});
  const ValueId qkv = pointwise(params, name + ".to_qkv", rows, 3 * width, /*stored=*/2);
  const AttentionRect all[] = {{0, pixels, {{0, pixels}}}};
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const ValueId attended = block_attention(b, qkv, /*heads=*/1, scale, all).out;
  const ValueId out = pointwise(params, name + ".proj", attended, width, /*stored=*/2);
  return add(b, reshape(b, out, shape), x);
}

ValueId middle(ParamUser& params, const std::string& name, ValueId x) {
  const int64_t width = channels(params, x);
  x = residual_block(params, name + ".middle.0", x, width);
  x = frame_attention(params, name + ".middle.1", x);
  return residual_block(params, name + ".middle.2", x, width);
}

ValueId head(ParamUser& params, const std::string& name, ValueId x, int64_t out) {
  return causal_conv(params, name + ".head.2", norm(params, name + ".head.0", x, /*silu=*/true),
                     out);
}

void declare_time_conv(ParamUser& params, const std::string& name, int64_t in, int64_t out) {
  time_weight(params, name + ".time_conv", in, out);
  bias(params, name + ".time_conv", out);
}

ValueId normalise(Builder& b, const VaeConfig& config, ValueId x) {
  const DType dtype = b.dtype(x);
  if (!config.mean.empty()) x = sub(b, x, channel_constant(b, config.mean, "latent_mean", dtype));
  if (config.std.empty()) return x;
  std::vector<double> inverse;
  for (const double std : config.std) inverse.push_back(1 / std);
  return mul(b, x, channel_constant(b, inverse, "latent_inverse_std", dtype));
}

ValueId denormalise(Builder& b, const VaeConfig& config, ValueId x) {
  const DType dtype = b.dtype(x);
  if (!config.std.empty()) x = mul(b, x, channel_constant(b, config.std, "latent_std", dtype));
  if (config.mean.empty()) return x;
  return add(b, x, channel_constant(b, config.mean, "latent_mean", dtype));
}

ValueId frames(Builder& b, ValueId x, int64_t begin, int64_t end) {
  return slice(b, x, 1, begin, end);
}

}  // namespace wam::vae
