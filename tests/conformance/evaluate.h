// Evaluates small graphs node by node on CPU, without planner or executor: what the conformance
// tests compare fused ops and gradients with.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "wam/graph/graph.h"
#include "wam/graph/op_def.h"
#include "wam/tensor/host_tensor.h"

namespace wam::conformance {

using Feeds = std::map<ValueId, HostTensor>;

// Values of `wanted`, given the graph's inputs.
std::vector<HostTensor> evaluate(const Graph& graph, const Feeds& feeds,
                                 std::span<const ValueId> wanted);

// The outputs of the op's decomposition. Checks that their types are the op's own.
std::vector<HostTensor> decomposed(const OpDef& op, const Attrs& attrs,
                                   std::span<const HostTensor> inputs);

// Whether gradients can flow through the op: it has a backward rule, or a decomposition made of ops
// for which this holds.
bool is_differentiable(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs);

}  // namespace wam::conformance
