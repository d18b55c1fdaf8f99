#include "wam/graph/builder.h"

#include "wam/base/error.h"

namespace wam {

OpCost cost_of(const OpDef& op, const OpArgs& args, std::span<const TensorType> outputs) {
  if (op.cost != nullptr) return op.cost(args, outputs);
  OpCost cost;
  if (op.has(kView)) return cost;
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) {
    cost.bytes += static_cast<double>(type.size_bytes());
    cost.flops += static_cast<double>(type.shape.num_elements());
  }
  return cost;
}

std::vector<ValueId> Builder::emit(const OpDef& op, std::span<const ValueId> inputs, Attrs attrs) {
  std::vector<TensorType> types;
  types.reserve(inputs.size());
  for (const ValueId input : inputs) types.push_back(graph_.type(input));
  std::vector<TensorType> output_types;
  try {
    output_types = op.infer({types, attrs});
  } catch (Error& error) {
    error.add_context("op " + std::string(op.name) +
                      (scope_.label.empty() ? "" : " in " + scope_.label));
    throw;
  }
  const NodeId node = graph_.add_node({.op = &op,
                                       .attrs = std::move(attrs),
                                       .inputs = {inputs.begin(), inputs.end()},
                                       .phase = scope_.phase,
                                       .block = scope_.block,
                                       .recomputed = scope_.recomputed,
                                       .label = scope_.label},
                                      output_types);
  return graph_.node(node).outputs;
}

}  // namespace wam
