#include "tests/conformance/evaluate.h"

#include <algorithm>

#include "tests/conformance/run_kernel.h"
#include "wam/base/check.h"
#include "wam/graph/builder.h"
#include "wam/graph/verify.h"

namespace wam::conformance {
namespace {

std::vector<ValueId> add_inputs(Graph& graph, std::span<const TensorType> types) {
  std::vector<ValueId> ids;
  for (const TensorType& type : types) {
    ids.push_back(graph.add_input("x" + std::to_string(ids.size()), type));
  }
  return ids;
}

std::vector<TensorType> types_of(std::span<const HostTensor> tensors) {
  std::vector<TensorType> types;
  for (const HostTensor& tensor : tensors) types.push_back(tensor.type());
  return types;
}

}  // namespace

std::vector<HostTensor> evaluate(const Graph& graph, const Feeds& feeds,
                                 std::span<const ValueId> wanted) {
  Feeds known = feeds;
  const auto get = [&](ValueId id) {
    const Value& value = graph.value(id);
    return value.kind == ValueKind::kConstant ? value.constant : known.at(id);
  };
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    std::vector<HostTensor> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(get(input));
    const std::vector<HostTensor> outputs = run_cpu(*node.op, node.attrs, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) known[node.outputs[i]] = outputs[i];
  }
  std::vector<HostTensor> results;
  for (const ValueId id : wanted) results.push_back(get(id));
  return results;
}

std::vector<HostTensor> decomposed(const OpDef& op, const Attrs& attrs,
                                   std::span<const HostTensor> inputs) {
  Graph graph;
  Builder builder(graph);
  const std::vector<TensorType> types = types_of(inputs);
  const std::vector<ValueId> ids = add_inputs(graph, types);
  const std::vector<ValueId> outputs = op.decompose(builder, ids, attrs);
  verify(graph);
  const std::vector<TensorType> expected = op.infer({types, attrs});
  WAM_CHECK(outputs.size() == expected.size()) << op.name << "'s decomposition";
  for (size_t i = 0; i < outputs.size(); ++i) {
    WAM_CHECK(graph.type(outputs[i]) == expected[i]) << op.name << "'s decomposition, output " << i;
  }
  Feeds feeds;
  for (size_t i = 0; i < ids.size(); ++i) feeds[ids[i]] = inputs[i];
  return evaluate(graph, feeds, outputs);
}

bool is_differentiable(const OpDef& op, const Attrs& attrs, std::span<const TensorType> inputs) {
  if (op.has(kNotDifferentiable)) return false;
  if (op.backward != nullptr) return true;
  if (op.decompose == nullptr) return false;
  Graph graph;
  Builder builder(graph);
  op.decompose(builder, add_inputs(graph, inputs), attrs);
  return std::ranges::all_of(graph.order(), [&](NodeId id) {
    const Node& node = graph.node(id);
    std::vector<TensorType> types;
    for (const ValueId input : node.inputs) types.push_back(graph.type(input));
    return node.op->has(kNotDifferentiable) || is_differentiable(*node.op, node.attrs, types);
  });
}

}  // namespace wam::conformance
