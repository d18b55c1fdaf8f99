// wam eval: open-loop action error in the robot's own units on held-out windows, beside predicting
// the mean action; predicted frames beside true ones.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "wam/train/open_loop.h"

namespace wam::train {

struct EvalOptions {
  std::string checkpoint;    // folder written by wam train
  std::string config;        // YAML; empty: the config.yaml in the checkpoint's folder
  std::string base;          // of a LoRA adapter; empty: model.base, or what it names itself
  std::string dataset;       // empty: the run's own
  std::string source;        // of a mixture: the dataset's name
  int64_t windows = 16;
  bool untrained = false;    // weights from the seed instead of the checkpoint's
  bool all_episodes = false; // draw from every episode instead of the held-out ones
  OpenLoopOptions sampler;
};

// Rows are actions of all windows in order; columns dims of the robot.
struct EvalResult {
  std::vector<std::string> dims;                  // "arm[0]"
  int64_t horizon = 0;                            // A
  std::vector<std::vector<double>> predicted, truth;  // [rows][dims]
  std::vector<double> mean_action;                // [dims], of the training windows
  std::vector<double> error, mean_error;          // mean absolute, per dim; of predicting the mean
  std::vector<double> error_by_step;              // [A], each dim over its mean_error, averaged
  double relative_error = 0;                      // mean over dims of error / mean_error
  std::vector<HostTensor> strips;                 // u8 [h, w, 3], true frames above predicted ones
};

EvalResult evaluate(const EvalOptions& options);
// Per dim and per step, as text.
std::string describe(const EvalResult& result);

}  // namespace wam::train
