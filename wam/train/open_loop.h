// Open-loop evaluation: on a held-out window the sampler predicts each block's actions and frames
// from the observed past; what was really observed is then written to the cache, and so on.
#pragma once

#include <memory>

#include "wam/models/dit_infer.h"
#include "wam/models/unipc.h"
#include "wam/train/encoders.h"
#include "wam/train/run_data.h"

namespace wam::train {

struct OpenLoopOptions {
  int steps = 16;           // of the sampler
  uint64_t seed = 0;        // of its noise
};

// One window's prediction, in the model's numbers.
struct OpenLoopPrediction {
  HostTensor action;   // f32 [K A, action_dim] normalised
  HostTensor latents;  // f32 [F, h, w, C]: frame 0 as observed, then the predicted blocks
};

// Programs for every cache length a window of K blocks passes through. Weights are shared with
// nothing: the caller loads them under params().
class OpenLoopPrograms {
 public:
  OpenLoopPrograms(const DitConfig& model, int64_t prompt_tokens, const Target& target);
  const ParamSet& params() const { return *params_; }
  std::vector<const Program*> programs() const;
  const Program& first_frame() const { return first_; }
  const Program& predict(int64_t block) const { return predict_[static_cast<size_t>(block)]; }
  const Program& observe(int64_t block) const { return observe_[static_cast<size_t>(block)]; }

 private:
  std::shared_ptr<ParamSet> params_;
  Program first_;
  std::vector<Program> predict_, observe_;
};

class OpenLoop {
 public:
  OpenLoop(const DitConfig& model, const OpenLoopPrograms& programs, Device& device,
           std::shared_ptr<Memory> memory, OpenLoopOptions options);
  // `encoded` and `state` ([1, K, state_dim]) of one window; `index` tells windows' noise apart.
  OpenLoopPrediction run(const Encoded& encoded, const HostTensor& state, uint64_t index);

 private:
  void predict_block(int64_t block, const HostTensor& state, uint64_t index, OpenLoopPrediction& out);
  void write_frames(Executor& executor, const HostTensor& latents, const Encoded& encoded, int64_t first,
                    int64_t count, float timestep);
  void write_conditions(Executor& executor, const Encoded& encoded);

  DitConfig model_;
  OpenLoopOptions options_;
  std::unique_ptr<Executor> first_;
  std::vector<std::unique_ptr<Executor>> predict_, observe_;
  const Encoded* encoded_ = nullptr;
};

}  // namespace wam::train
