#include "wam/train/step_inputs.h"

#include <algorithm>
#include <cstring>

#include "wam/base/check.h"
#include "wam/base/philox.h"

namespace wam::train {
namespace {

HostTensor normals(const Shape& shape, RandomUse use, const DrawPlace& place) {
  HostTensor noise(DType::kF32, shape);
  const int64_t batch = shape[0];
  const auto size = static_cast<size_t>(shape.num_elements() / batch);
#pragma omp parallel for schedule(static)
  for (int64_t b = 0; b < batch; ++b) {
    fill_normal(noise.as<float>().subspan(static_cast<size_t>(b) * size, size), place.seed, use,
                static_cast<uint64_t>(place.step), static_cast<uint64_t>(place.first_index + b));
  }
  return noise;
}

// Rows that are not real are excluded, and all rows of a sample without actions.
HostTensor effective_mask(const data::Batch& batch) {
  HostTensor mask = batch.action_mask.clone();
  const int64_t per_sample = mask.num_elements() / mask.shape()[0];
  for (int64_t i = 0; i < mask.num_elements(); ++i) {
    mask.as<float>()[static_cast<size_t>(i)] *=
        batch.has_real_action.as<float>()[static_cast<size_t>(i / per_sample)];
  }
  return mask;
}

// Each sample gets what belongs to the next one of its micro-batch.
HostTensor next_sample(const HostTensor& x) {
  HostTensor rolled(x.dtype(), x.shape());
  const int64_t batch = x.shape()[0], bytes = x.size_bytes() / batch;
  auto* to = static_cast<uint8_t*>(rolled.data());
  const auto* from = static_cast<const uint8_t*>(x.data());
  for (int64_t b = 0; b < batch; ++b) {
    std::memcpy(to + b * bytes, from + (b + 1) % batch * bytes, static_cast<size_t>(bytes));
  }
  return rolled;
}

}  // namespace

void StepInputs::write_to(Executor& executor) const {
  for (const auto& [name, value] : values) executor.write(name, value);
}

StepInputs make_step_inputs(const TrainConfig& config, const DitConfig& model, const data::Batch& batch,
                            const Encoded& encoded, const DrawPlace& place) {
  const TimestepLayout layout = timestep_layout(config.noise);
  const int64_t size = batch.action.shape()[0];
  const int64_t rows = num_timestep_rows(model, layout), actions = model.num_actions();
  HostTensor timesteps(DType::kF32, Shape{size, rows}), sigmas(DType::kF32, Shape{size, rows}),
      weights(DType::kF32, Shape{size, rows}), frame_weights(DType::kF32, Shape{size, model.num_frames()}),
      action_times(DType::kF32, Shape{size, actions});
  for (int64_t b = 0; b < size; ++b) {
    const TimestepIds ids = draw_timestep_ids(
        config.noise, model.num_blocks, model.actions_per_block, place.seed, static_cast<uint64_t>(place.step),
        static_cast<uint64_t>(place.first_index + b));
    const TimestepRows r = timestep_rows(model, layout, ids.video, ids.action);
    std::ranges::copy(r.timestep, timesteps.as<float>().begin() + b * rows);
    std::ranges::copy(r.sigma, sigmas.as<float>().begin() + b * rows);
    std::ranges::copy(r.weight, weights.as<float>().begin() + b * rows);
    for (int64_t f = 0; f < model.num_frames(); ++f) {
      const auto at = static_cast<size_t>(b * model.num_frames() + f);
      frame_weights.as<float>()[at] =
          r.frame_weight[static_cast<size_t>(f)] * batch.video_mask.as<float>()[at];
    }
    for (int64_t i = 0; i < actions; ++i) {
      action_times.as<float>()[static_cast<size_t>(b * actions + i)] =
          r.timestep[static_cast<size_t>(action_row(model, layout, i))];
    }
  }
  StepInputs inputs;
  const Shape latents{size, model.num_frames(), model.latent_height, model.latent_width, model.latent_channels};
  inputs.values = {{"noise", normals(latents, RandomUse::kVideoNoise, place)},
                   {"action", batch.action},
                   {"action_noise", normals(batch.action.shape(), RandomUse::kActionNoise, place)},
                   {"action_mask", effective_mask(batch)},
                   {"state", withholds(config, kStates) ? next_sample(batch.state) : batch.state},
                   {"timesteps", timesteps},
                   {"sigmas", sigmas},
                   {"weights", weights},
                   {"frame_weights", frame_weights},
                   {"action_timesteps", action_times},
                   {"context", withholds(config, kInstructions) ? next_sample(encoded.context) : encoded.context}};
  if (encoded.latents.empty()) return inputs;
  inputs.values.emplace_back("latents", encoded.latents);
  inputs.values.emplace_back("clip", encoded.clip);
  if (model.has_y()) inputs.values.emplace_back("y", encoded.y);
  return inputs;
}

}  // namespace wam::train
