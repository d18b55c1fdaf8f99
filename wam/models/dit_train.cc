#include "wam/models/dit_train.h"

#include <cmath>

#include "wam/base/check.h"
#include "wam/models/flow_schedule.h"
#include "wam/ops/add.h"
#include "wam/ops/block_attention.h"
#include "wam/ops/cast.h"
#include "wam/ops/concat.h"
#include "wam/ops/lerp_rows.h"
#include "wam/ops/patchify.h"
#include "wam/ops/reshape.h"
#include "wam/ops/rules.h"
#include "wam/ops/slice.h"
#include "wam/ops/sub.h"
#include "wam/ops/take_rows.h"
#include "wam/ops/weighted_mse.h"

namespace wam {
namespace {

class TrainBuilder {
 public:
  TrainBuilder(ParamUser& params, const DitConfig& config, const DitTrainShape& shape)
      : params_(params),
        b_(params.builder()),
        c_(config),
        shape_(shape),
        ft_(params.dtype()),
        st_(rules::grad_dtype(ft_)) {}

  DitTrain run() {
    result_.layout = make_layout(c_, shape_.timesteps, shape_.clean_context);
    declare_inputs();
    const TimeEmbedding time = embed_time(params_, c_, timesteps_);
    ValueId x = assemble_tokens();
    const BlockContext context = make_context(time.projection);
    const double scale = 1.0 / std::sqrt(static_cast<double>(c_.head_dim()));
    const SelfAttention attend = [&](int, ValueId qkv) {
      return block_attention(b_, qkv, c_.heads, scale, result_.layout.rects).out;
    };
    for (int layer = 0; layer < c_.layers; ++layer) {
      x = transformer_block(params_, c_, layer, x, context, attend);
    }
    predict(x, time.embedding);
    add_losses();
    return std::move(result_);
  }

 private:
  ValueId input(const std::string& name, DType dtype, const Shape& shape) {
    return b_.graph().add_input(name, {dtype, shape});
  }

  void declare_inputs() {
    const int64_t batch = shape_.batch;
    const auto frames = [&](int64_t channels) {
      return Shape{batch, c_.num_frames(), c_.latent_height, c_.latent_width, channels};
    };
    latents_ = input("latents", st_, frames(c_.latent_channels));
    noise_ = input("noise", st_, frames(c_.latent_channels));
    if (c_.has_y()) y_ = input("y", st_, frames(c_.y_channels));
    const Shape actions{batch, c_.num_actions(), c_.action_dim};
    action_ = input("action", st_, actions);
    action_noise_ = input("action_noise", st_, actions);
    action_mask_ = input("action_mask", st_, actions);
    state_ = input("state", st_, Shape{batch, c_.num_blocks, c_.state_dim});
    const Shape rows{batch, result_.layout.num_rows};
    timesteps_ = input("timesteps", st_, rows);
    sigmas_ = input("sigmas", st_, rows);
    weights_ = input("weights", st_, rows);
    frame_weights_ = input("frame_weights", st_, Shape{batch, c_.num_frames()});
    action_timesteps_ = input("action_timesteps", st_, Shape{batch, c_.num_actions()});
    context_ = input("context", ft_, Shape{batch, shape_.text_tokens, c_.text_dim});
    clip_ = input("clip", ft_, Shape{batch, c_.clip_tokens, c_.clip_dim});
    video_rows_ = constant_i32(b_, result_.layout.video_rows, "video_rows");
    action_rows_ = constant_i32(b_, result_.layout.action_rows, "action_rows");
  }

  ValueId with_y(ValueId patches) {
    if (!c_.has_y()) return cast(b_, patches, ft_);
    const ValueId parts[] = {patches, patchify(b_, y_, PatchOrder::kChannelFirst, st_)};
    return cast(b_, concat(b_, parts, -1), ft_);
  }

  // [clean | noisy | actions | states], then the internal order.
  ValueId assemble_tokens() {
    const ValueId clean = patchify(b_, latents_, PatchOrder::kChannelFirst, st_);
    const ValueId noise = patchify(b_, noise_, PatchOrder::kChannelFirst, st_);
    const ValueId noisy = lerp_rows(b_, clean, noise, sigmas_, video_rows_);
    const ValueId video[] = {with_y(clean), with_y(noisy)};
    const ValueId noisy_action =
        cast(b_, lerp_rows(b_, action_, action_noise_, sigmas_, action_rows_), ft_);
    const ValueId parts[] = {embed_patches(params_, c_, concat(b_, video, 1)),
                             encode_actions(params_, c_, noisy_action, action_timesteps_),
                             encode_states(params_, c_, cast(b_, state_, ft_))};
    return take_rows(b_, concat(b_, parts, 1),
                     constant_i32(b_, result_.layout.public_row, "order"));
  }

  BlockContext make_context(ValueId projection) {
    BlockContext context{.projection = projection,
                         .index = constant_i32(b_, result_.layout.timestep_row, "timestep_row"),
                         .text = embed_text(params_, c_, context_),
                         .image = embed_image(params_, c_, clip_)};
    context.text_bias = padding_bias(b_, c_, shape_.text_tokens, st_);
    context.rope = b_.graph().add_constant(
        rope_table(train_positions(c_, result_.layout), c_.head_dim(), st_), "rope");
    return context;
  }

  void predict(ValueId x, ValueId embedding) {
    const ValueId noisy =
        take_rows(b_, x, constant_i32(b_, result_.layout.noisy_tokens, "noisy_tokens"));
    result_.video_pred = head(params_, c_, noisy, embedding, video_rows_);
    const ValueId actions =
        take_rows(b_, x, constant_i32(b_, result_.layout.action_tokens, "action_tokens"));
    result_.action_pred = decode_actions(params_, c_, actions);
  }

  void add_losses() {
    ScopeGuard scope(b_, {"loss", -1, Phase::kForward});
    const ValueId target = sub(b_, patchify(b_, noise_, PatchOrder::kChannelLast, st_),
                               patchify(b_, latents_, PatchOrder::kChannelLast, st_));
    const WeightedMse video{result_.video_pred, target, frame_weights_, frame_of_token(), {}};
    const WeightedMse actions{result_.action_pred, sub(b_, action_noise_, action_), weights_,
                              action_rows_, action_mask_};
    result_.dynamics_loss = mean_error(video);
    result_.action_loss = mean_error(actions);
    result_.loss = add(b_, result_.dynamics_loss, result_.action_loss);
    if (shape_.sample_losses) add_sample_losses(video, actions);
  }

  ValueId mean_error(const WeightedMse& inputs) {
    return weighted_mse(b_, inputs, 1.0 / static_cast<double>(b_.shape(inputs.pred).num_elements()));
  }

  // Nothing of the gradient comes from these; a batch of one has them already.
  void add_sample_losses(const WeightedMse& video, const WeightedMse& actions) {
    std::vector<ValueId> losses;
    for (const WeightedMse* all : {&video, &actions}) {
      for (int64_t i = 0; i < shape_.batch; ++i) {
        const auto of_sample = [&](ValueId x) { return slice(b_, x, 0, i, i + 1); };
        ValueId loss = all == &video ? result_.dynamics_loss : result_.action_loss;
        if (shape_.batch > 1) {
          WeightedMse one = *all;
          for (ValueId* x : {&one.pred, &one.target, &one.row_weight}) *x = of_sample(*x);
          if (one.mask.valid()) one.mask = of_sample(one.mask);
          loss = mean_error(one);
        }
        losses.push_back(reshape(b_, loss, Shape{1}));
      }
    }
    result_.sample_losses = concat(b_, losses, 0);
  }

  // [N] latent frame of each noisy video token.
  ValueId frame_of_token() {
    std::vector<int32_t> frames;
    for (int64_t i = 0; i < c_.clean_tokens(); ++i) {
      frames.push_back(static_cast<int32_t>(i / c_.tokens_per_frame()));
    }
    return constant_i32(b_, frames, "frame_of_token");
  }

  ParamUser& params_;
  Builder& b_;
  const DitConfig& c_;
  const DitTrainShape& shape_;
  DType ft_, st_;
  DitTrain result_;
  ValueId latents_, noise_, y_, action_, action_noise_, action_mask_, state_;
  ValueId timesteps_, action_timesteps_, sigmas_, weights_, frame_weights_, context_, clip_,
      video_rows_, action_rows_;
};

}  // namespace

DitTrain build_dit_train(ParamUser& params, const DitConfig& config, const DitTrainShape& shape) {
  check(config);
  if (shape.text_tokens < 1 || shape.text_tokens > config.text_len) {
    throw ConfigError({.where = "prompt_tokens",
                       .what = "text rows out of range",
                       .got = std::to_string(shape.text_tokens),
                       .expected = "1 to text_len = " + std::to_string(config.text_len),
                       .remedy = "Choose text_encoder.prompt_tokens in that range."});
  }
  return TrainBuilder(params, config, shape).run();
}

TimestepRows timestep_rows(const DitConfig& config, TimestepLayout layout,
                           std::span<const int32_t> video_ids,
                           std::span<const int32_t> action_ids) {
  const FlowTable& table = flow_table();
  std::vector<int32_t> ids(static_cast<size_t>(num_timestep_rows(config, layout)), -1);
  const auto set = [&](int64_t row, int32_t id) {
    int32_t& known = ids[static_cast<size_t>(row)];
    WAM_CHECK(id >= 0 && id < kFlowSteps && (known < 0 || known == id))
        << "row " << row << " gets timestep ids " << known << " and " << id;
    known = id;
  };
  for (size_t f = 0; f < video_ids.size(); ++f) {
    set(frame_row(config, layout, static_cast<int64_t>(f)), video_ids[f]);
  }
  for (size_t i = 0; i < action_ids.size(); ++i) {
    set(action_row(config, layout, static_cast<int64_t>(i)), action_ids[i]);
  }
  TimestepRows result;
  for (const int32_t id : ids) {
    result.timestep.push_back(id < 0 ? 0 : table.timestep[static_cast<size_t>(id)]);
    result.sigma.push_back(id < 0 ? 0 : table.sigma[static_cast<size_t>(id)]);
    result.weight.push_back(id < 0 ? 0 : table.weight[static_cast<size_t>(id)]);
  }
  for (const int32_t id : video_ids) {
    result.frame_weight.push_back(table.weight[static_cast<size_t>(id)]);
  }
  return result;
}

}  // namespace wam
