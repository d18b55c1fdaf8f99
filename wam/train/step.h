// The programs of a training step, planned together: forward + backward for the first micro-batch
// (writes gradients), the same for later ones (adds to them), the optimizer, and the loss alone for
// validation. Built without a device: full-size plans need no GPU.
#pragma once

#include <memory>
#include <optional>

#include "wam/exec/executor.h"
#include "wam/models/dit_train.h"
#include "wam/models/flow_schedule.h"
#include "wam/models/params.h"
#include "wam/ops/adamw.h"
#include "wam/passes/pass.h"
#include "wam/passes/recompute.h"
#include "wam/train/sharding.h"

namespace wam::train {

// Regions of the plan by name.
inline constexpr const char* kStepInputs = "inputs.step";
inline constexpr const char* kOptimizerInputs = "inputs.optimizer";

// Decoupled noise gives each action a timestep of its own.
TimestepLayout timestep_layout(NoiseOption noise);

struct StepOptions {
  DitConfig model;
  DitTrainShape shape;
  int64_t accumulate = 1;        // micro-batches of an optimizer step, on each rank
  Sharding sharding;
  DType dtype = DType::kF32;     // compute type; bf16 keeps a split float32 master
  DType gradient_dtype = DType::kF32;  // in which gradients are kept; bf16 only beside bf16 compute
  bool fuse = true;              // false: every fused op decomposed (the slow twin)
  RecomputeOptions recompute;
  PassOptions passes;
  AdamwOptions adamw{.beta1 = 0.95, .beta2 = 0.999, .eps = 1e-8};
  double clip_grad = 1.0;        // 0: no clipping
  bool outputs_predictions = false;  // validation also gives video_pred and action_pred
};

// Outputs: loss, dynamics_loss, action_loss (st scalars) of first, add and validation, and with
// shape.sample_losses sample_losses as DitTrain has them;
// grad_norm_squared (st) and scalars (f32 [8], as applied) of the optimizer.
struct StepPrograms {
  std::shared_ptr<ParamSet> params;
  DitLayout layout;
  Program first, validation, optimizer;
  std::optional<Program> add;   // later micro-batches, if there are any but the last
  std::optional<Program> last;  // the last of several, where it also sums gradients over ranks
  RecomputeReport recompute;
  std::vector<PassReport> passes;
  std::vector<const Program*> all() const;
  // The program of micro-batch `i` of `accumulate`.
  const Program& micro_batch(int64_t i, int64_t accumulate) const {
    if (i == 0) return first;
    return last && i + 1 == accumulate ? *last : *add;
  }
};

StepPrograms build_step(const StepOptions& options, const Target& target);

// Which of a step's micro-batches a graph is for.
struct MicroBatchPlace {
  bool first = true, last = true;  // writes gradients or adds to them; sums them over ranks
};
// Forward and backward with gradient outputs, before lowering: for tests and dumps.
Graph build_step_graph(const StepOptions& options, ParamSet& params, MicroBatchPlace place,
                       DitLayout* layout = nullptr, RecomputeReport* recompute_report = nullptr,
                       std::vector<PassReport>* pass_reports = nullptr);
Graph build_validation_graph(const StepOptions& options, ParamSet& params);
Graph build_optimizer_graph(const StepOptions& options, const ParamSet& params);

// Names of all passes, in order, for --disable-pass.
std::vector<std::string> pass_names();

}  // namespace wam::train
