// The training table of flow matching with 1000 entries and shift 5, and the drawing of timestep
// ids. Every operation of the table is rounded to float32, so that it is bit-equal to the public one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace wam {

inline constexpr int kFlowSteps = 1000;

struct FlowTable {
  std::array<float, kFlowSteps> sigma;     // 5 s / (1 + 4 s), s from 1 down to 0.001
  std::array<float, kFlowSteps> timestep;  // 1000 sigma
  std::array<float, kFlowSteps> weight;    // loss weight, mean 1
};

const FlowTable& flow_table();

// How ids are drawn (docs/model.md, Objective).
enum class NoiseOption : uint8_t {
  kUniform,    // video uniform; actions take their block's id
  kBeta,       // both floor(1000 (1 - b)), b ~ Beta(3, 1)
  kDecoupled,  // video by beta, an id drawn uniformly for each action token
};

struct TimestepIds {
  std::vector<int32_t> video;   // [F]: frame 0 its own, both frames of a block one
  std::vector<int32_t> action;  // [K * A]
};

// Pure function of its arguments. `sample` is the place in the global stream of samples.
TimestepIds draw_timestep_ids(NoiseOption option, int64_t num_blocks, int64_t actions_per_block,
                              uint64_t seed, uint64_t step, uint64_t sample);

}  // namespace wam
