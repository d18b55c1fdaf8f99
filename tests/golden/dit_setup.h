// A DiT from a golden file: configuration, weights, inputs.
#pragma once

#include <algorithm>

#include "tests/golden/golden.h"
#include "wam/base/error.h"
#include "wam/exec/executor.h"
#include "wam/models/dit_infer.h"
#include "wam/models/dit_train.h"
#include "wam/train/state_access.h"
#include "wam/train/step.h"

namespace wam::golden {

inline DitConfig dit_config(const nlohmann::json& j, int64_t height, int64_t width,
                            int64_t frames) {
  DitConfig c;
  c.dim = j.at("dim");
  c.layers = j.at("num_layers");
  c.heads = j.at("num_heads");
  c.ffn_dim = j.at("ffn_dim");
  c.freq_dim = j.at("freq_dim");
  c.text_dim = j.at("text_dim");
  c.text_len = j.at("text_len");
  c.clip_dim = j.at("clip_dim");
  c.latent_channels = j.at("out_dim");
  c.y_channels =
      j.at("concat_first_frame_latent") ? j.at("in_dim").get<int64_t>() - c.latent_channels : 0;
  c.action_dim = j.at("action_dim");
  c.state_dim = j.at("max_state_dim");
  c.coder_dim = j.at("hidden_size");
  c.actions_per_block = j.at("num_action_per_block");
  c.max_chunk_size = j.at("max_chunk_size");
  c.num_blocks = (frames - 1) / 2;
  c.latent_height = height;
  c.latent_width = width;
  return c;
}

// Gives "<prefix><part name>" of the file to `write`.
inline void load_params(const ParamSet& set, const File& file, const std::string& prefix,
                        const PartWriter& write) {
  for (const Param& param : set.params()) {
    for (const ParamPart& part : param.parts) {
      ASSERT_TRUE(file.has(prefix + part.name)) << prefix + part.name;
      const HostTensor value = file.f32(prefix + part.name);
      ASSERT_EQ(value.shape(), part.shape) << part.name;
      write(param, part, value);
    }
  }
}

// In the type that the program reads.
inline void write(Executor& executor, const std::string& name, const HostTensor& value) {
  for (const NamedOperand& input : executor.program().inputs) {
    if (input.name == name) executor.write(name, value.to(input.operand.type.dtype));
  }
}

inline HostTensor read_part(const Param& param, const ParamPart& part, const std::string& region,
                            Memory& memory) {
  HostTensor value(DType::kF32, part.shape);
  memory.read_region(region, (param.offset_elements + part.offset_elements) * 4, value.data(),
                     value.size_bytes());
  return value;
}

// [B, C, F, h, w] -> [B, F, h, w, C].
inline HostTensor channels_last(const HostTensor& x) { return permuted(x, {0, 2, 3, 4, 1}); }

// The timestep inputs of a batch from ids [B, F] and [B, K A].
struct TimestepInputs {
  HostTensor timesteps, sigmas, weights, action_timesteps, frame_weights;
};
inline TimestepInputs timestep_inputs(const DitConfig& c, TimestepLayout layout,
                                      const HostTensor& video, const HostTensor& action) {
  const int64_t batch = video.shape()[0], rows = make_layout(c, layout).num_rows;
  TimestepInputs in{HostTensor(DType::kF32, Shape{batch, rows}),
                    HostTensor(DType::kF32, Shape{batch, rows}),
                    HostTensor(DType::kF32, Shape{batch, rows}),
                    HostTensor(DType::kF32, Shape{batch, c.num_actions()}),
                    HostTensor(DType::kF32, Shape{batch, c.num_frames()})};
  const auto frames = static_cast<size_t>(c.num_frames()),
             actions = static_cast<size_t>(c.num_actions());
  for (size_t b = 0; b < static_cast<size_t>(batch); ++b) {
    const auto action_ids = action.as<int32_t>().subspan(b * actions, actions);
    const TimestepRows r =
        timestep_rows(c, layout, video.as<int32_t>().subspan(b * frames, frames), action_ids);
    std::ranges::copy(r.timestep,
                      in.timesteps.as<float>().begin() + static_cast<int64_t>(b) * rows);
    std::ranges::copy(r.sigma, in.sigmas.as<float>().begin() + static_cast<int64_t>(b) * rows);
    std::ranges::copy(r.weight, in.weights.as<float>().begin() + static_cast<int64_t>(b) * rows);
    std::ranges::copy(r.frame_weight,
                      in.frame_weights.as<float>().begin() + static_cast<int64_t>(b * frames));
    for (size_t i = 0; i < actions; ++i) {
      in.action_timesteps.as<float>()[b * actions + i] =
          r.timestep[static_cast<size_t>(action_row(c, layout, static_cast<int64_t>(i)))];
    }
  }
  return in;
}

// The tightest layout in which these ids can be expressed.
inline TimestepLayout layout_for(const DitConfig& c, const HostTensor& video,
                                 const HostTensor& action) {
  for (const TimestepLayout layout : {TimestepLayout::kPerBlock, TimestepLayout::kPerAction}) {
    try {
      timestep_inputs(c, layout, video, action);
      return layout;
    } catch (const InternalError&) {
    }
  }
  return TimestepLayout::kPerFrame;
}

}  // namespace wam::golden
