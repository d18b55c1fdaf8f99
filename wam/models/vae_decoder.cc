#include "wam/models/vae.h"
#include "wam/models/vae_blocks.h"
#include "wam/ops/add.h"
#include "wam/ops/broadcast_dim.h"
#include "wam/ops/cast.h"
#include "wam/ops/concat.h"
#include "wam/ops/permute.h"
#include "wam/ops/reshape.h"
#include "wam/ops/upsample_nearest2x.h"

namespace wam {
namespace {

// Channels in the order (c, column, row) become pixels of 2 x 2 blocks.
ValueId unfold_pixels(Builder& b, ValueId x) {
  const Shape s = b.shape(x);
  const int64_t channels = s[4] / 4;
  x = reshape(b, x, Shape{s[0] * s[1], s[2], s[3], channels, 2, 2});
  x = permute(b, x, {0, 1, 5, 2, 4, 3});
  return reshape(b, x, Shape{s[0], s[1], 2 * s[2], 2 * s[3], channels});
}

// Shortcut around a stage: each channel is repeated until the channels, read as (c, t, y, x), fill
// `out` channels of ft frames and 2 x 2 pixels. The first ft - 1 frames are dropped.
ValueId duplicate_up(Builder& b, ValueId x, int64_t out, int64_t ft) {
  constexpr int64_t fs = 2;
  const Shape s = b.shape(x);
  const int64_t repeats = out * ft * fs * fs / s[4];
  x = broadcast_dim(b, x, 5, repeats);
  x = reshape(b, x, Shape{s[0], s[1], s[2], s[3], out, ft, fs, fs});
  x = permute(b, x, {0, 1, 5, 2, 6, 3, 7, 4});
  x = reshape(b, x, Shape{s[0], s[1] * ft, s[2] * fs, s[3] * fs, out});
  return vae::frames(b, x, ft - 1, s[1] * ft);
}

// Doubles the frames but the first: each gives two, in the halves of time_conv's channels. Frame 0
// passes and is not the others' context.
ValueId upsample_time(ParamUser& params, const std::string& name, ValueId x) {
  Builder& b = params.builder();
  const Shape s = b.shape(x);
  const int64_t later = s[1] - 1, width = s[4];
  ValueId pairs = vae::time_conv(params, name + ".time_conv", vae::frames(b, x, 1, s[1]), 2 * width,
                                 /*before=*/2, /*stride=*/1);
  pairs = reshape(b, pairs, Shape{s[0], later, s[2] * s[3], 2, width});
  pairs = permute(b, pairs, {0, 1, 3, 2, 4});
  pairs = reshape(b, pairs, Shape{s[0], 2 * later, s[2], s[3], width});
  return concat(b, {vae::frames(b, x, 0, 1), pairs}, 1);
}

class Decoder {
 public:
  Decoder(ParamUser& params, const VaeConfig& config)
      : params_(params), b_(params.builder()), config_(config) {}

  ValueId run(ValueId z) {
    const int64_t stages = static_cast<int64_t>(config_.dim_mult.size());
    ValueId x = vae::pointwise(params_, "conv2", z, config_.z_dim);
    x = vae::causal_conv(params_, "decoder.conv1", x, config_.dec_dim * config_.dim_mult.back());
    x = vae::middle(params_, "decoder", x);
    for (int64_t i = 0; i < stages; ++i) x = stage(x, i);
    const int64_t patch = config_.patch();
    x = vae::head(params_, "decoder", x, 3 * patch * patch);
    return patch == 2 ? unfold_pixels(b_, x) : x;
  }

 private:
  // Stage i undoes the encoder's stage (last - i).
  ValueId stage(ValueId x, int64_t i) {
    const ValueId input = x;
    const auto mirrored = config_.dim_mult.size() - 1 - static_cast<size_t>(i);
    const int64_t width = config_.dec_dim * config_.dim_mult[mirrored];
    for (int64_t j = 0; j <= config_.num_res_blocks; ++j) {
      x = vae::residual_block(params_, layer_name(i, j), x, width);
    }
    if (mirrored == 0) return x;
    const bool temporal = config_.temporal_downsample[mirrored - 1];
    x = upsample(layer_name(i, config_.num_res_blocks + 1), x, temporal);
    if (config_.kind == VaeKind::kWan21) return x;
    return add(b_, x, duplicate_up(b_, input, width, temporal ? 2 : 1));
  }

  ValueId upsample(const std::string& name, ValueId x, bool temporal) {
    const int64_t width = b_.shape(x)[-1];
    if (temporal && b_.shape(x)[1] > 1) x = upsample_time(params_, name, x);
    if (temporal) vae::declare_time_conv(params_, name, width, 2 * width);
    const int64_t out = config_.kind == VaeKind::kWan21 ? width / 2 : width;
    return vae::picture_conv(params_, name + ".resample.1", upsample_nearest2x(b_, x), out,
                             /*stride=*/1);
  }

  // Wan2.1 numbers all layers in one list, Wan2.2 those of each stage.
  std::string layer_name(int64_t stage, int64_t layer) const {
    const std::string list = "decoder.upsamples.";
    if (config_.kind == VaeKind::kWan22) {
      return list + std::to_string(stage) + ".upsamples." + std::to_string(layer);
    }
    return list + std::to_string(stage * (config_.num_res_blocks + 2) + layer);
  }

  ParamUser& params_;
  Builder& b_;
  const VaeConfig& config_;
};

}  // namespace

ValueId vae_decode(ParamUser& params, const VaeConfig& config, ValueId latents) {
  check(config);
  Builder& b = params.builder();
  const ScopeGuard scope(b, {.label = "vae.decoder"});
  const ValueId raw = vae::denormalise(b, config, latents);
  const ValueId video = Decoder(params, config).run(cast(b, raw, params.dtype()));
  return cast(b, video, b.dtype(latents));
}

}  // namespace wam
