// Trains: config -> dataset -> batches -> frozen encoders -> step program -> optimizer program ->
// metrics and checkpoints. One Trainer is one process's share of a run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wam/dist/world.h"
#include "wam/train/config.h"

namespace wam::train {

struct TrainOptions {
  bool resume = false;         // continue from the run folder's newest checkpoint, exactly
  std::string init_from;       // weights only, from a checkpoint folder or file
  std::string command_line;    // stored with the run
  bool quiet = false;          // no live line
  std::shared_ptr<dist::World> world = nullptr;  // the run's ranks; null: this process alone
};

// Means over a step's samples of one dataset of a mixture.
struct SourceLoss {
  int64_t samples = 0;  // 0: none in this step, and no means
  double dynamics_loss = 0, action_loss = 0;
};

// Numbers of one optimizer step.
struct StepMetrics {
  int64_t step = 0;  // counted from 1: steps done
  double loss = 0, dynamics_loss = 0, action_loss = 0, grad_norm = 0, lr = 0;
  double samples_per_second = 0, wait_share = 0;
  bool skipped = false;  // non-finite: weights unchanged
  std::vector<SourceLoss> sources;  // of a mixture, in the order of the config; else empty
  // With several ranks: the slowest one's seconds up to the first wait for others and its number, and
  // the largest share of the step that a rank spent in collectives.
  int slowest_rank = -1;
  double slowest_seconds = 0, collective_share = 0;
  std::string samples;  // with log_samples: the step's, in the order of the global batch
};

struct TrainResult {
  int64_t steps_done = 0;
  bool interrupted = false;  // by SIGINT or SIGTERM; a checkpoint was saved
  StepMetrics first, last;
  double first_validation_loss = 0, last_validation_loss = 0;  // NaN without held-out episodes
  std::string checkpoint;  // newest folder
};

class Trainer {
 public:
  Trainer(TrainConfig config, TrainOptions options);
  ~Trainer();
  // To the last step or a signal. Throws wam::Error; what was saved stays good.
  TrainResult run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wam::train
