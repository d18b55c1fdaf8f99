#include <algorithm>

#include "wam/models/vae.h"
#include "wam/models/vae_blocks.h"
#include "wam/ops/average_down.h"
#include "wam/ops/broadcast_rows.h"
#include "wam/ops/cast.h"
#include "wam/ops/concat.h"
#include "wam/ops/fold_pixels.h"
#include "wam/ops/pad_zeros.h"
#include "wam/ops/pixels_to_float.h"
#include "wam/ops/reshape.h"
#include "wam/ops/resize_image.h"
#include "wam/ops/slice.h"

namespace wam {
namespace {

// Halves height and width, and with `temporal` time: frame 0 passes, output j reads 2j-2 .. 2j.
ValueId downsample(ParamUser& params, const std::string& name, ValueId x, bool temporal) {
  Builder& b = params.builder();
  x = vae::picture_conv(params, name + ".resample.1", x, b.shape(x)[-1], /*stride=*/2);
  const int64_t frames = b.shape(x)[1];
  if (!temporal || frames == 1) return x;
  const ValueId later = vae::time_conv(params, name + ".time_conv", x, b.shape(x)[-1], 0, 2);
  return concat(b, {vae::frames(b, x, 0, 1), later}, 1);
}

class Encoder {
 public:
  Encoder(ParamUser& params, const VaeConfig& config)
      : params_(params), b_(params.builder()), config_(config) {}

  // [B, T, H, W, 3] -> mean of the latents [B, F, h, w, z], not normalised.
  ValueId run(ValueId x) {
    const DType dtype = params_.dtype();
    x = config_.kind == VaeKind::kWan22 ? fold_pixels(b_, x, dtype) : cast(b_, x, dtype);
    x = vae::causal_conv(params_, "encoder.conv1", x, config_.dim);
    for (size_t i = 0; i < config_.dim_mult.size(); ++i) x = stage(x, i);
    x = vae::middle(params_, "encoder", x);
    x = vae::head(params_, "encoder", x, 2 * config_.z_dim);
    x = vae::pointwise(params_, "conv1", x, 2 * config_.z_dim);
    return slice(b_, x, -1, 0, config_.z_dim);
  }

 private:
  ValueId stage(ValueId x, size_t i) {
    const ValueId input = x;
    const int64_t width = config_.dim * config_.dim_mult[i];
    const bool last = i + 1 == config_.dim_mult.size();
    const bool temporal = !last && config_.temporal_downsample[i];
    for (int64_t j = 0; j < config_.num_res_blocks; ++j) {
      x = vae::residual_block(params_, layer_name(i, j), x, width);
    }
    if (!last) {
      const std::string name = layer_name(i, config_.num_res_blocks);
      x = downsample(params_, name, x, temporal);
      if (temporal) vae::declare_time_conv(params_, name, width, width);
    }
    if (config_.kind == VaeKind::kWan21) return x;
    return average_down(b_, input, x, temporal ? 2 : 1, last ? 1 : 2);
  }

  // Wan2.1 numbers all layers in one list, Wan2.2 those of each stage.
  std::string layer_name(size_t stage, int64_t layer) const {
    const std::string list = "encoder.downsamples.";
    if (config_.kind == VaeKind::kWan22) {
      return list + std::to_string(stage) + ".downsamples." + std::to_string(layer);
    }
    return list +
           std::to_string(static_cast<int64_t>(stage) * (config_.num_res_blocks + 1) + layer);
  }

  ParamUser& params_;
  Builder& b_;
  const VaeConfig& config_;
};

}  // namespace

ValueId vae_encode(ParamUser& params, const VaeConfig& config, ValueId video) {
  Builder& b = params.builder();
  const Shape s = b.shape(video);
  check(config);
  check_clip(config, s[1], s[2], s[3]);
  const ScopeGuard scope(b, {.label = "vae.encoder"});
  const DType stat = b.dtype(video);
  const ValueId mean = cast(b, Encoder(params, config).run(video), stat);
  return vae::normalise(b, config, mean);
}

ValueId vae_first_frame_condition(ParamUser& params, const VaeConfig& config, ValueId first,
                                  int64_t frames) {
  Builder& b = params.builder();
  // A mid-grey frame is 0 after scaling to [-1, 1].
  const ValueId latents = vae_encode(params, config, pad_zeros(b, first, 1, 0, frames - 1));
  const Shape s = b.shape(latents);
  const int64_t frame = s[2] * s[3] * kConditionMaskChannels;
  HostTensor mask = HostTensor::zeros(DType::kF32, Shape{s[1], s[2], s[3], kConditionMaskChannels});
  std::fill_n(mask.as<float>().begin(), frame, 1.0f);
  const ValueId one = b.graph().add_constant(mask.to(b.dtype(latents)), "first_frame_mask");
  const ValueId masks =
      broadcast_rows(b, one, Shape{s[0], s[1], s[2], s[3], kConditionMaskChannels});
  return concat(b, {masks, latents}, -1);
}

ValueId frames_to_video(Builder& b, ValueId frames, int64_t height, int64_t width, DType dtype) {
  return resize_image(b, pixels_to_float(b, frames, dtype), height, width, ResizeFilter::kBilinear);
}

}  // namespace wam
