// A step made to fit a device: recomputes as little as its memory allows, or says what would fit.
#pragma once

#include <span>

#include "wam/train/step.h"

namespace wam::train {

// Most bytes a plan may have.
struct MemoryLimit {
  int64_t bytes = 0;
  std::string where;  // "cuda:0 NVIDIA H200"
};

// Left of a GPU's free memory beside the plan: code, library handles, captured graphs.
inline constexpr int64_t kDeviceReserve = int64_t{640} << 20;

// What a device offers now. Says in `where` if much of its memory is held by others.
MemoryLimit limit_of(const wam::Device& device, bool is_gpu);

// True if recompute is `auto` without a budget of its own: the limit then is the budget.
bool fits_device(const RecomputeOptions& options);

// build_step(); with fits_device(), the budget is found such that the step's programs and `others`
// fit together. PlanError, naming settings that would fit, if even that cannot be done.
StepPrograms build_fitting_step(const StepOptions& options, const Target& target,
                                const MemoryLimit& limit, std::span<const Program* const> others);

// Throws PlanError if the programs do not fit; says which settings would (other micro-batch sizes
// at the same samples a step, recompute, gradients' type).
void check_fits(const StepOptions& options, const StepPrograms& programs, const Target& target,
                const MemoryLimit& limit, std::span<const Program* const> others);

}  // namespace wam::train
