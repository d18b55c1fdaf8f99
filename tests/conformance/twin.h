// References for ops whose results cancel: the float64 CPU kernel (checked against plain loops by
// tests/reference), with one magnitude a tensor, its largest absolute value. A sum of n products of
// entries of that size rounds by at most the reduction bound of it.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/conformance/cases.h"
#include "tests/conformance/run_kernel.h"
#include "wam/ops/rules.h"

namespace wam::conformance {

// For ops whose inputs are all floating point.
inline Reference float64_twin(const OpDef& op) {
  return [&op](const RefArgs& args) {
    std::vector<HostTensor> inputs;
    for (const Wide& wide : args.inputs) {
      HostTensor tensor(DType::kF64, wide.shape);
      std::ranges::copy(wide.data, tensor.as<double>().begin());
      inputs.push_back(std::move(tensor));
    }
    std::vector<Wide> outputs;
    for (const HostTensor& tensor : run_cpu(op, args.attrs, inputs)) {
      Wide wide = to_wide(tensor);
      double largest = 0;
      for (const double value : wide.data) largest = std::max(largest, std::fabs(value));
      wide.magnitude.assign(wide.data.size(), largest);
      outputs.push_back(std::move(wide));
    }
    return outputs;
  };
}

// Output `output` of `op` applied to the inputs `from`: what the op's gradient takes.
inline Input made_by(const OpDef& op, const Attrs& attrs, std::vector<size_t> from, size_t output,
                     Shape shape, Role role) {
  return derived(shape, role, [&op, attrs, from, output](std::span<const HostTensor> before) {
    std::vector<HostTensor> inputs;
    for (const size_t i : from) {
      inputs.push_back(before[i].to(rules::grad_dtype(before[i].dtype())));
    }
    return run_cpu(op, attrs, inputs)[output];
  });
}

}  // namespace wam::conformance
