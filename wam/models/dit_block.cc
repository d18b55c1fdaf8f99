#include "wam/models/dit_block.h"

#include <fmt/format.h>

#include <cmath>

#include "wam/ops/add.h"
#include "wam/ops/attention.h"
#include "wam/ops/cast.h"
#include "wam/ops/concat.h"
#include "wam/ops/gate.h"
#include "wam/ops/gelu_erf.h"
#include "wam/ops/gelu_tanh.h"
#include "wam/ops/layer_norm.h"
#include "wam/ops/linear.h"
#include "wam/ops/modulate.h"
#include "wam/ops/modulation_table.h"
#include "wam/ops/qk_norm_rope.h"
#include "wam/ops/relu.h"
#include "wam/ops/reshape.h"
#include "wam/ops/rules.h"
#include "wam/ops/silu.h"
#include "wam/ops/slice.h"
#include "wam/ops/timestep_embedding.h"

namespace wam {
namespace {

constexpr double kNormEps = 1e-6;
constexpr double kImageNormEps = 1e-5;

const ParamInit kXavier{InitKind::kXavierUniform};
const ParamInit kZeros{InitKind::kZeros};
const ParamInit kOnes{InitKind::kOnes};
const ParamInit kSmall{InitKind::kNormal, 0.02};

// Linear layer with checkpoint names "<name>.weight", "<name>.bias".
ValueId dense(ParamUser& params, const std::string& name, ValueId x, int64_t out, const ParamInit& init,
              int block = -1) {
  const int64_t in = params.builder().shape(x)[-1];
  const ValueId weight = params.param(name + ".weight", Shape{out, in}, init, block);
  return linear(params.builder(), x, weight, params.param(name + ".bias", Shape{out}, kZeros, block));
}

// Per-embodiment coders keep weights as [1, in, out] under "<name>.W", "<name>.b".
ValueId coder(ParamUser& params, const std::string& name, ValueId x, int64_t out) {
  const int64_t in = params.builder().shape(x)[-1];
  const ValueId weight = params.param(name + ".W", Shape{in, out}, Shape{1, in, out}, kSmall);
  const ValueId bias = params.param(name + ".b", Shape{out}, Shape{1, out}, kZeros);
  return linear(params.builder(), x, weight, bias, /*kn=*/true);
}

// Several dense layers of one input as one: their weights stand together in the flat buffer.
ValueId fused_dense(ParamUser& params, const std::string& prefix, std::span<const std::string> names,
                    ValueId x, int64_t out_each, int block) {
  const int64_t in = params.builder().shape(x)[-1];
  std::vector<std::string> weights, biases;
  std::string stem = prefix;
  for (const std::string& name : names) {
    weights.push_back(prefix + name + ".weight");
    biases.push_back(prefix + name + ".bias");
    stem += name + "+";
  }
  stem.pop_back();
  ParamInit init = kXavier;
  init.fan_in = in;
  init.fan_out = out_each;
  const ValueId weight = params.stacked(stem + ".weight", weights, Shape{out_each, in}, init, block);
  const ValueId bias = params.stacked(stem + ".bias", biases, Shape{out_each}, kZeros, block);
  return linear(params.builder(), x, weight, bias);
}

// Row j of a [J, B, T, D] table.
ValueId table_row(Builder& b, ValueId table, int64_t j) {
  const Shape shape = b.shape(table);
  return reshape(b, slice(b, table, 0, j, j + 1), Shape{shape[1], shape[2], shape[3]});
}

ValueId affine_norm(ParamUser& params, const std::string& name, ValueId x, double eps, int block = -1) {
  const int64_t width = params.builder().shape(x)[-1];
  const ValueId weight = params.param(name + ".weight", Shape{width}, kOnes, block);
  const ValueId bias = params.param(name + ".bias", Shape{width}, kZeros, block);
  return layer_norm(params.builder(), x, eps, weight, bias).y;
}

ValueId norm_weight(ParamUser& params, const std::string& name, int64_t width, int block) {
  return params.param(name + ".weight", Shape{width}, kOnes, block);
}

// Keys and values of one context: projected together, keys normalised.
ValueId context_kv(ParamUser& params, const std::string& prefix, const std::string& suffix,
                   ValueId context, int64_t dim, const QkNormRope& norm, int layer) {
  const std::string names[] = {"k" + suffix, "v" + suffix};
  const ValueId kv = fused_dense(params, prefix, names, context, dim, layer);
  const ValueId weight[] = {norm_weight(params, prefix + "norm_k" + suffix, dim, layer)};
  return qk_norm_rope(params.builder(), kv, weight, {}, norm);
}

ValueId cross_attention(ParamUser& params, const DitConfig& c, int layer, ValueId h,
                        const BlockContext& context) {
  Builder& b = params.builder();
  const std::string prefix = fmt::format("blocks.{}.cross_attn.", layer);
  ScopeGuard scope(b, {fmt::format("blocks.{}.cross_attn", layer), layer, Phase::kForward});
  const ValueId weight[] = {norm_weight(params, prefix + "norm_q", c.dim, layer)};
  const ValueId q = qk_norm_rope(b, dense(params, prefix + "q", h, c.dim, kXavier, layer), weight, {},
                                 {.parts = 1, .heads = c.heads, .eps = kNormEps});
  const QkNormRope norm{.parts = 2, .heads = c.heads, .eps = kNormEps};
  const ValueId text_kv = context_kv(params, prefix, "", context.text, c.dim, norm, layer);
  const ValueId image_kv = context_kv(params, prefix, "_img", context.image, c.dim, norm, layer);
  const double scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim()));
  const ValueId text =
      attention(b, q, text_kv, {.heads = c.heads, .scale = scale, .key_bias = context.text_bias}).out;
  const ValueId image = attention(b, q, image_kv, {.heads = c.heads, .scale = scale}).out;
  return dense(params, prefix + "o", add(b, text, image), c.dim, kXavier, layer);
}

ValueId self_attention(ParamUser& params, const DitConfig& c, int layer, ValueId h,
                       const BlockContext& context, const SelfAttention& attend) {
  Builder& b = params.builder();
  const std::string prefix = fmt::format("blocks.{}.self_attn.", layer);
  ScopeGuard scope(b, {fmt::format("blocks.{}.self_attn", layer), layer, Phase::kForward});
  const std::string names[] = {"q", "k", "v"};
  const ValueId qkv = fused_dense(params, prefix, names, h, c.dim, layer);
  const ValueId weights[] = {norm_weight(params, prefix + "norm_q", c.dim, layer),
                             norm_weight(params, prefix + "norm_k", c.dim, layer)};
  const ValueId rotated = qk_norm_rope(b, qkv, weights, context.rope,
                                       {.parts = 3, .heads = c.heads, .eps = kNormEps});
  return dense(params, prefix + "o", attend(layer, rotated), c.dim, kXavier, layer);
}

ValueId feed_forward(ParamUser& params, const DitConfig& c, int layer, ValueId h) {
  Builder& b = params.builder();
  const std::string prefix = fmt::format("blocks.{}.ffn.", layer);
  ScopeGuard scope(b, {fmt::format("blocks.{}.ffn", layer), layer, Phase::kForward});
  const ValueId inner = gelu_tanh(b, dense(params, prefix + "0", h, c.ffn_dim, kXavier, layer));
  return dense(params, prefix + "2", inner, c.dim, kXavier, layer);
}

}  // namespace

ValueId constant_i32(Builder& b, const std::vector<int32_t>& values, const std::string& name) {
  HostTensor tensor(DType::kI32, Shape{static_cast<int64_t>(values.size())});
  std::ranges::copy(values, tensor.as<int32_t>().begin());
  return b.graph().add_constant(std::move(tensor), name);
}

ValueId padding_bias(Builder& b, const DitConfig& config, int64_t text_tokens, DType dtype) {
  const int64_t padding = config.text_len + 1 - text_tokens;
  if (padding <= 1) return {};
  HostTensor bias = HostTensor::zeros(DType::kF64, Shape{text_tokens});
  bias.as<double>().back() = std::log(static_cast<double>(padding));
  return b.graph().add_constant(bias.to(dtype), "text_bias");
}

TimeEmbedding embed_time(ParamUser& params, const DitConfig& c, ValueId timesteps) {
  Builder& b = params.builder();
  ScopeGuard scope(b, {"time_embedding", -1, Phase::kForward});
  const DType st = b.dtype(timesteps);
  const DType ft = params.dtype();
  const ValueId wave = cast(b, timestep_embedding(b, timesteps, c.freq_dim, SinusoidOrder::kCosSin), ft);
  const ValueId inner = silu(b, dense(params, "time_embedding.0", wave, c.dim, kSmall));
  const ValueId embedding = dense(params, "time_embedding.2", inner, c.dim, kSmall);
  const ValueId projection =
      dense(params, "time_projection.1", silu(b, embedding), 6 * c.dim, kXavier);
  return {cast(b, embedding, st), cast(b, projection, st)};
}

ValueId embed_text(ParamUser& params, const DitConfig& c, ValueId text) {
  Builder& b = params.builder();
  ScopeGuard scope(b, {"text_embedding", -1, Phase::kForward});
  const ValueId inner = gelu_tanh(b, dense(params, "text_embedding.0", text, c.dim, kSmall));
  return dense(params, "text_embedding.2", inner, c.dim, kSmall);
}

ValueId embed_image(ParamUser& params, const DitConfig& c, ValueId tokens) {
  Builder& b = params.builder();
  ScopeGuard scope(b, {"img_emb", -1, Phase::kForward});
  const int64_t width = b.shape(tokens)[-1];
  ValueId x = affine_norm(params, "img_emb.proj.0", tokens, kImageNormEps);
  x = gelu_erf(b, dense(params, "img_emb.proj.1", x, width, kXavier));
  x = dense(params, "img_emb.proj.3", x, c.dim, kXavier);
  return affine_norm(params, "img_emb.proj.4", x, kImageNormEps);
}

ValueId embed_patches(ParamUser& params, const DitConfig& c, ValueId patches) {
  Builder& b = params.builder();
  ScopeGuard scope(b, {"patch_embedding", -1, Phase::kForward});
  const int64_t channels = c.latent_channels + c.y_channels;
  ParamInit init = kXavier;
  init.fan_in = 4 * channels;
  init.fan_out = c.dim;
  const ValueId weight = params.param("patch_embedding.weight", Shape{c.dim, 4 * channels},
                                      Shape{c.dim, channels, 1, 2, 2}, init);
  return linear(b, patches, weight, params.param("patch_embedding.bias", Shape{c.dim}, kZeros));
}

ValueId encode_actions(ParamUser& params, const DitConfig& c, ValueId actions, ValueId timesteps) {
  Builder& b = params.builder();
  ScopeGuard scope(b, {"action_encoder", -1, Phase::kForward});
  const ValueId wave = cast(b, timestep_embedding(b, timesteps, c.dim, SinusoidOrder::kSinCos),
                            params.dtype());
  const ValueId parts[] = {coder(params, "action_encoder.W1", actions, c.dim), wave};
  const ValueId inner = silu(b, coder(params, "action_encoder.W2", concat(b, parts, -1), c.dim));
  return coder(params, "action_encoder.W3", inner, c.dim);
}

ValueId encode_states(ParamUser& params, const DitConfig& c, ValueId states) {
  Builder& b = params.builder();
  ScopeGuard scope(b, {"state_encoder", -1, Phase::kForward});
  const ValueId inner = relu(b, coder(params, "state_encoder.layer1", states, c.coder_dim));
  return coder(params, "state_encoder.layer2", inner, c.dim);
}

ValueId decode_actions(ParamUser& params, const DitConfig& c, ValueId tokens) {
  Builder& b = params.builder();
  ScopeGuard scope(b, {"action_decoder", -1, Phase::kForward});
  const ValueId inner = relu(b, coder(params, "action_decoder.layer1", tokens, c.coder_dim));
  return coder(params, "action_decoder.layer2", inner, c.action_dim);
}

ValueId transformer_block(ParamUser& params, const DitConfig& c, int layer, ValueId x,
                          const BlockContext& context, const SelfAttention& attend) {
  Builder& b = params.builder();
  const std::string label = fmt::format("blocks.{}", layer);
  ScopeGuard scope(b, {label, layer, Phase::kForward});
  const ParamInit init{InitKind::kNormal, 1.0 / std::sqrt(static_cast<double>(c.dim))};
  const ValueId own =
      params.param(label + ".modulation", Shape{6, c.dim}, Shape{1, 6, c.dim}, init, layer);
  const ValueId table = modulation_table(b, context.projection, own);
  const auto e = [&](int64_t j) { return table_row(b, table, j); };
  const auto normed = [&](int64_t first) {
    return modulate(b, layer_norm(b, x, kNormEps).y, e(first + 1), e(first), context.index);
  };
  const ValueId attended = self_attention(params, c, layer, normed(0), context, attend);
  x = add(b, x, gate(b, attended, e(2), context.index));
  const ValueId h = affine_norm(params, label + ".norm3", x, kNormEps, layer);
  x = add(b, x, cross_attention(params, c, layer, h, context));
  const ValueId fed = feed_forward(params, c, layer, normed(3));
  return add(b, x, gate(b, fed, e(5), context.index));
}

ValueId head(ParamUser& params, const DitConfig& c, ValueId x, ValueId embedding, ValueId index) {
  Builder& b = params.builder();
  ScopeGuard scope(b, {"head", -1, Phase::kForward});
  const ParamInit init{InitKind::kNormal, 1.0 / std::sqrt(static_cast<double>(c.dim))};
  const ValueId own = params.param("head.modulation", Shape{2, c.dim}, Shape{1, 2, c.dim}, init);
  const auto m = [&](int64_t j) {
    const ValueId row = reshape(b, slice(b, own, 0, j, j + 1), Shape{c.dim});
    return add(b, embedding, cast(b, row, b.dtype(embedding)));
  };
  const ValueId h = modulate(b, layer_norm(b, x, kNormEps).y, m(1), m(0), index);
  return dense(params, "head.head", h, 4 * c.latent_channels, kZeros);
}

}  // namespace wam
