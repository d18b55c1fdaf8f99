#include "wam/passes/decompose_fused.h"

#include "wam/graph/op_def.h"
#include "wam/passes/pattern.h"

namespace wam {
namespace {

bool decompose_once(Graph& graph) {
  Rewriter rewriter(graph);
  for (const NodeId id : std::vector<NodeId>(graph.order().begin(), graph.order().end())) {
    const Node node = graph.node(id);
    if (node.op->decompose == nullptr) continue;
    rewriter.replace(id, [&](Builder& b) {
      const std::vector<ValueId> outputs = node.op->decompose(b, node.inputs, node.attrs);
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].valid()) rewriter.substitute(node.outputs[i], outputs[i]);
      }
    });
  }
  return rewriter.apply();
}

}  // namespace

bool decompose_fused(Graph& graph) {
  bool changed = false;
  while (decompose_once(graph)) changed = true;
  return changed;
}

}  // namespace wam
