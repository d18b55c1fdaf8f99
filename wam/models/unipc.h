// UniPC multistep sampler (Zhao et al., "UniPC", NeurIPS 2023) for flow matching: order 2, variant
// bh2, data prediction, corrector from the second step on, order 1 in the last step, as the public
// checkpoints are sampled. Host code on float vectors; computes coefficients in float64.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wam {

// sigma_i = 5 s / (1 + 4 s), s = linspace(0.999, 0, steps + 1) without the end; the last sigma is 0.
struct UnipcSchedule {
  std::vector<float> sigmas;        // [steps + 1]
  std::vector<int64_t> timesteps;   // [steps] floor(1000 sigma)
};
UnipcSchedule unipc_schedule(int steps);

class UnipcSampler {
 public:
  explicit UnipcSampler(int steps);

  const UnipcSchedule& schedule() const { return schedule_; }
  int num_steps() const { return static_cast<int>(schedule_.timesteps.size()); }
  // Advances `sample` from step `index` to the next; `velocity` is the model's output there.
  // Steps come in order 0, 1, ...; sizes stay the same.
  void step(int index, std::span<const float> velocity, std::vector<float>& sample);

 private:
  UnipcSchedule schedule_;
  std::vector<std::vector<float>> predictions_;  // data predictions, newest last, at most 2
  std::vector<float> last_sample_;               // the sample the last predictor started from
  int last_order_ = 0;
};

}  // namespace wam
