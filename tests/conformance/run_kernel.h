// Runs one op on CPU with everything around it watched: guard zones before and after every buffer,
// outputs and workspace poisoned, inputs compared afterwards.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "wam/graph/op_def.h"
#include "wam/kernels/kernel.h"
#include "wam/tensor/host_tensor.h"

namespace wam::conformance {

struct RunOptions {
  uint8_t poison = 0xFF;               // bytes that outputs and workspace hold before the run; NaN
  std::vector<InPlace> in_place = {};  // outputs to lay where inputs are
};

// The outputs. Throws InternalError where a guard zone or an input was written to. Views and ops
// without a CPU kernel but with a decomposition are run by what they are made of.
std::vector<HostTensor> run_cpu(const OpDef& op, const Attrs& attrs,
                                std::span<const HostTensor> inputs, const RunOptions& options = {});

// The same with a kernel given by hand.
std::vector<HostTensor> run_kernel(const OpDef& op, const KernelDef& kernel, const Attrs& attrs,
                                   std::span<const HostTensor> inputs,
                                   const RunOptions& options = {});

bool same_bits(const HostTensor& a, const HostTensor& b);

}  // namespace wam::conformance
