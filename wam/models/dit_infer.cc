#include "wam/models/dit_infer.h"

#include <cmath>

#include "wam/base/check.h"
#include "wam/models/dit_layout.h"
#include "wam/ops/attention.h"
#include "wam/ops/cast.h"
#include "wam/ops/concat.h"
#include "wam/ops/patchify.h"
#include "wam/ops/rules.h"
#include "wam/ops/slice.h"
#include "wam/ops/unpatchify.h"
#include "wam/ops/write_rows.h"

namespace wam {
namespace {

class InferBuilder {
 public:
  InferBuilder(ParamUser& params, const DitConfig& config, const DitInferShape& shape,
               const std::string& cache_region)
      : params_(params),
        b_(params.builder()),
        c_(config),
        shape_(shape),
        cache_region_(cache_region),
        ft_(params.dtype()),
        st_(rules::grad_dtype(ft_)) {}

  DitInfer run() {
    video_tokens_ = shape_.frames * c_.tokens_per_frame();
    result_.new_tokens = video_tokens_ + (shape_.with_actions ? c_.actions_per_block + 1 : 0);
    WAM_CHECK(shape_.cache_tokens + result_.new_tokens <= shape_.cache_capacity);
    const ValueId timesteps = input("timesteps", st_, Shape{1, shape_.frames + 1});
    const TimeEmbedding time = embed_time(params_, c_, timesteps);
    ValueId x = tokens();
    const BlockContext context = make_context(time.projection);
    const SelfAttention attend = [this](int layer, ValueId qkv) { return cached(layer, qkv); };
    for (int layer = 0; layer < c_.layers; ++layer) {
      x = transformer_block(params_, c_, layer, x, context, attend);
    }
    predict(x, time.embedding);
    return result_;
  }

 private:
  ValueId input(const std::string& name, DType dtype, const Shape& shape) {
    return b_.graph().add_input(name, {dtype, shape});
  }
  Shape frames(int64_t channels) const {
    return Shape{1, shape_.frames, c_.latent_height, c_.latent_width, channels};
  }

  ValueId tokens() {
    ValueId patches = patchify(b_, input("latents", st_, frames(c_.latent_channels)),
                               PatchOrder::kChannelFirst, st_);
    if (c_.has_y()) {
      const ValueId y = input("y", st_, frames(c_.y_channels));
      const ValueId parts[] = {patches, patchify(b_, y, PatchOrder::kChannelFirst, st_)};
      patches = concat(b_, parts, -1);
    }
    const ValueId video = embed_patches(params_, c_, cast(b_, patches, ft_));
    if (!shape_.with_actions) return video;
    const int64_t actions = c_.actions_per_block;
    const ValueId action = cast(b_, input("action", st_, Shape{1, actions, c_.action_dim}), ft_);
    const ValueId time = input("action_timesteps", st_, Shape{1, actions});
    const ValueId state = cast(b_, input("state", st_, Shape{1, 1, c_.state_dim}), ft_);
    const ValueId parts[] = {video, encode_actions(params_, c_, action, time),
                             encode_states(params_, c_, state)};
    return concat(b_, parts, 1);
  }

  BlockContext make_context(ValueId projection) {
    std::vector<int32_t> rows;
    std::vector<RopePosition> positions;
    const int64_t columns = c_.latent_width / 2, per_frame = c_.tokens_per_frame();
    for (int64_t i = 0; i < video_tokens_; ++i) {
      const int64_t frame = i / per_frame, token = i % per_frame;
      rows.push_back(static_cast<int32_t>(frame));
      positions.push_back({true, shape_.first_frame + frame, token / columns, token % columns, 0});
    }
    for (int64_t i = video_tokens_; i < result_.new_tokens; ++i) {
      rows.push_back(static_cast<int32_t>(shape_.frames));
      const int64_t place = i - video_tokens_;
      const bool state = place == c_.actions_per_block;
      positions.push_back(
          {false, 0, 0, 0, state ? shape_.block : shape_.block * c_.actions_per_block + place});
    }
    video_rows_ = constant_i32(b_, {rows.begin(), rows.begin() + video_tokens_}, "video_rows");
    BlockContext context{.projection = projection, .index = constant_i32(b_, rows, "timestep_row")};
    context.text = embed_text(params_, c_, input("context", ft_, Shape{1, shape_.text_tokens, c_.text_dim}));
    context.image = embed_image(params_, c_, input("clip", ft_, Shape{1, c_.clip_tokens, c_.clip_dim}));
    context.text_bias = padding_bias(b_, c_, shape_.text_tokens, st_);
    context.rope = b_.graph().add_constant(rope_table(positions, c_.head_dim(), st_), "rope");
    return context;
  }

  ValueId cached(int layer, ValueId qkv) {
    const ValueId cache = b_.graph().add_state(
        "cache/" + std::to_string(layer), {ft_, Shape{1, shape_.cache_capacity, 2 * c_.dim}},
        {cache_region_, layer * shape_.cache_capacity * 2 * c_.dim * size_bytes(ft_), StateRole::kCache});
    const ValueId written =
        write_rows(b_, cache, slice(b_, qkv, 2, c_.dim, 3 * c_.dim), shape_.cache_tokens);
    b_.graph().add_update(cache, written);
    const ValueId kv = slice(b_, written, 1, 0, shape_.cache_tokens + result_.new_tokens);
    const double scale = 1.0 / std::sqrt(static_cast<double>(c_.head_dim()));
    return attention(b_, slice(b_, qkv, 2, 0, c_.dim), kv, {.heads = c_.heads, .scale = scale}).out;
  }

  void predict(ValueId x, ValueId embedding) {
    const ValueId patches = head(params_, c_, slice(b_, x, 1, 0, video_tokens_), embedding, video_rows_);
    result_.video = unpatchify(b_, patches, {shape_.frames, c_.latent_height, c_.latent_width},
                               PatchOrder::kChannelLast, st_);
    if (!shape_.with_actions) return;
    const ValueId tokens = slice(b_, x, 1, video_tokens_, video_tokens_ + c_.actions_per_block);
    result_.action = cast(b_, decode_actions(params_, c_, tokens), st_);
  }

  ParamUser& params_;
  Builder& b_;
  const DitConfig& c_;
  const DitInferShape& shape_;
  const std::string& cache_region_;
  DType ft_, st_;
  int64_t video_tokens_ = 0;
  ValueId video_rows_;
  DitInfer result_;
};

}  // namespace

DitInfer build_dit_infer(ParamUser& params, const DitConfig& config, const DitInferShape& shape,
                         const std::string& cache_region) {
  check(config);
  return InferBuilder(params, config, shape, cache_region).run();
}

int64_t cache_capacity(const DitConfig& config, int64_t frames) {
  return (frames + 2) * config.tokens_per_frame() + config.actions_per_block + 1;
}

}  // namespace wam
