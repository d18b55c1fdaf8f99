// Layers shared by the encoder and the decoder of the Wan autoencoders. Channels last: x [B, T, H,
// W, C] of the parameters' type. Names are those of the checkpoints.
#pragma once

#include <string>

#include "wam/models/params.h"
#include "wam/models/vae_config.h"

namespace wam::vae {

// Kernel k x k x k with zeros before the first frame and around pictures: nothing of the future. A
// residual is added to the result.
ValueId causal_conv(ParamUser& params, const std::string& name, ValueId x, int64_t out,
                    int64_t k = 3, ValueId residual = {});
// Kernel k along time alone; no padding after, `before` zero frames before.
ValueId time_conv(ParamUser& params, const std::string& name, ValueId x, int64_t out,
                  int64_t before, int64_t stride);
// 3 x 3 on each frame. Stride 1: zeros all around; stride 2: zeros right and below only.
ValueId picture_conv(ParamUser& params, const std::string& name, ValueId x, int64_t out,
                     int64_t stride);
// 1 x 1 x 1, a product with a matrix; `stored` are the trailing dims of size 1 in the checkpoint.
ValueId pointwise(ParamUser& params, const std::string& name, ValueId x, int64_t out,
                  int stored = 3);
// "<name>.gamma" has `stored` trailing dims of size 1.
ValueId norm(ParamUser& params, const std::string& name, ValueId x, bool silu, int stored = 3);

// norm, SiLU, conv, norm, SiLU, conv, plus x, which goes through a pointwise where the width
// changes.
ValueId residual_block(ParamUser& params, const std::string& name, ValueId x, int64_t out);
// Each pixel of a frame attends to all pixels of the frame, one head.
ValueId frame_attention(ParamUser& params, const std::string& name, ValueId x);
// "<name>.middle": residual block, attention, residual block.
ValueId middle(ParamUser& params, const std::string& name, ValueId x);
// "<name>.head": norm, SiLU, conv to `out` channels.
ValueId head(ParamUser& params, const std::string& name, ValueId x, int64_t out);

// Parameters of a time_conv() belong to the model even where a clip of one frame does not use them:
// clips of all lengths share the layout.
void declare_time_conv(ParamUser& params, const std::string& name, int64_t in, int64_t out);

// (x - mean) / std per channel and back; x in the statistics type.
ValueId normalise(Builder& b, const VaeConfig& config, ValueId x);
ValueId denormalise(Builder& b, const VaeConfig& config, ValueId x);

// Frames [begin, end) of x.
ValueId frames(Builder& b, ValueId x, int64_t begin, int64_t end);

}  // namespace wam::vae
