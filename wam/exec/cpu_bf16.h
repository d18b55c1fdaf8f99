// bf16 on a CPU: values are stored in bf16, an op computes in f32 on widened copies, and its
// results are rounded to nearest even. What a GPU kernel with f32 inside gives, up to the order of
// its sums.
#pragma once

#include <memory>

#include "wam/kernels/kernel.h"
#include "wam/plan/program.h"

namespace wam {

// The CPU kernel of a step. Null if there is none for the op.
std::unique_ptr<Kernel> create_cpu_kernel(const Step& step);
// Its scratch, the widened copies included.
int64_t cpu_workspace_bytes(const Step& step);

}  // namespace wam
