#include "wam/passes/fuse_accumulation.h"

#include "wam/ops/op_list.h"
#include "wam/passes/pattern.h"

namespace wam {
namespace {

// The add that puts `value` on top of a state; null if there is none or others read the value.
const Node* find_sum(const Graph& graph, const GraphView& view,
                     const std::vector<std::vector<NodeId>>& users, ValueId value) {
  if (!view.used_once(value) || users[static_cast<size_t>(value.index)].empty()) return nullptr;
  const Node& sum = graph.node(users[static_cast<size_t>(value.index)].front());
  const bool fits = sum.op->name == "add" && sum.inputs[1] == value &&
                    graph.value(sum.inputs[0]).kind == ValueKind::kState &&
                    graph.type(sum.inputs[0]) == graph.type(value);
  return fits ? &sum : nullptr;
}

}  // namespace

bool fuse_accumulation(Graph& graph) {
  const GraphView view(graph);
  const std::vector<std::vector<NodeId>> users = graph.users();
  Rewriter rewriter(graph);
  for (const NodeId id : std::vector<NodeId>(graph.order().begin(), graph.order().end())) {
    const Node wgrad = graph.node(id);
    if (wgrad.op->name != "linear_wgrad" || wgrad.attrs.flag("accumulate")) continue;
    std::vector<ValueId> inputs = wgrad.inputs, sums;
    for (const ValueId output : wgrad.outputs) {
      const Node* sum = find_sum(graph, view, users, output);
      if (sum == nullptr) break;
      inputs.push_back(sum->inputs[0]);
      sums.push_back(sum->outputs[0]);
    }
    if (sums.size() != wgrad.outputs.size()) continue;
    Attrs attrs = wgrad.attrs;
    attrs.set("accumulate", true);
    rewriter.replace(id, [&](Builder& b) {
      const std::vector<ValueId> fused = b.emit(linear_wgrad_op, inputs, attrs);
      for (size_t i = 0; i < sums.size(); ++i) {
        rewriter.drop(graph.value(sums[i]).producer);
        rewriter.substitute(sums[i], fused[i]);
      }
    });
  }
  return rewriter.apply();
}

}  // namespace wam
