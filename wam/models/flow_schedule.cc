#include "wam/models/flow_schedule.h"

#include <algorithm>
#include <cmath>

#include "wam/base/philox.h"

namespace wam {
namespace {

FlowTable make_table() {
  FlowTable table;
  const float c = 0.001f;
  for (int i = 0; i < kFlowSteps; ++i) {
    // The products of a float and a small integer are exact in double: each s is rounded once.
    const float s = static_cast<float>(i < 500 ? 1.0 - double{c} * i : double{c} * (kFlowSteps - i));
    table.sigma[i] = 5.0f * s / (1.0f + 4.0f * s);
    table.timestep[i] = 1000.0f * table.sigma[i];
  }
  std::array<float, kFlowSteps> bell;
  for (int i = 0; i < kFlowSteps; ++i) {
    const float z = (table.timestep[i] - 500.0f) / 1000.0f;
    bell[i] = std::exp(-2.0f * z * z);
  }
  const float lowest = *std::ranges::min_element(bell);
  double sum = 0;
  for (const float b : bell) sum += static_cast<double>(b - lowest);
  const float factor = static_cast<float>(kFlowSteps / sum);
  for (int i = 0; i < kFlowSteps; ++i) table.weight[i] = (bell[i] - lowest) * factor;
  return table;
}

// Beta(3, 1) has the distribution function b^3.
int32_t beta_id(double uniform) {
  const double b = std::cbrt(uniform);
  return std::min(static_cast<int32_t>(std::floor(kFlowSteps * (1.0 - b))), kFlowSteps - 1);
}

}  // namespace

const FlowTable& flow_table() {
  static const FlowTable table = make_table();
  return table;
}

TimestepIds draw_timestep_ids(NoiseOption option, int64_t num_blocks, int64_t actions_per_block,
                              uint64_t seed, uint64_t step, uint64_t sample) {
  Random random(seed, RandomUse::kTimestep, step, sample);
  const auto draw = [&] {
    return option == NoiseOption::kUniform ? static_cast<int32_t>(random.below(kFlowSteps))
                                           : beta_id(random.uniform());
  };
  TimestepIds ids;
  ids.video.push_back(draw());
  for (int64_t block = 0; block < num_blocks; ++block) {
    const int32_t id = draw();
    ids.video.insert(ids.video.end(), {id, id});
    ids.action.insert(ids.action.end(), static_cast<size_t>(actions_per_block), id);
  }
  if (option == NoiseOption::kDecoupled) {
    Random own(seed, RandomUse::kActionTimestep, step, sample);
    for (int32_t& id : ids.action) id = static_cast<int32_t>(own.below(kFlowSteps));
  }
  return ids;
}

}  // namespace wam
