// Learning rate: linear warm-up from 0, then a cosine down to min_lr at total_steps.
#pragma once

#include "wam/ops/adamw.h"
#include "wam/tensor/host_tensor.h"

namespace wam::train {

struct LearningRate {
  double lr = 1e-5;
  double min_lr = 0;
  int64_t warmup_steps = 0;
  int64_t total_steps = 1;
};

// Of the optimizer step number `step`, counted from 0: 0 in step 0 when there is a warm-up.
double learning_rate(const LearningRate& schedule, int64_t step);

// The optimizer program's input "schedule"; `t` is 1 in the first step.
HostTensor adamw_schedule(double lr, double weight_decay, const AdamwOptions& options, int64_t t);

}  // namespace wam::train
