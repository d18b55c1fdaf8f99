#include "wam/passes/fuse_linear_gelu.h"

#include "wam/ops/linear_dgrad_gelu.h"
#include "wam/ops/linear_gelu.h"
#include "wam/passes/pattern.h"

namespace wam {

bool fuse_linear_gelu(Graph& graph) {
  const GraphView view(graph);
  Rewriter rewriter(graph);
  for (const NodeId id : std::vector<NodeId>(graph.order().begin(), graph.order().end())) {
    const Node gelu = graph.node(id);
    if (gelu.op->name != "gelu_tanh") continue;
    const Node* found = view.producer(gelu.inputs[0], "linear");
    if (found == nullptr || !view.used_once(gelu.inputs[0])) continue;
    const Node linear = *found;
    rewriter.replace(id, [&](Builder& b) {
      const ValueId bias = linear.inputs.size() == 3 ? linear.inputs[2] : ValueId{};
      const LinearGelu fused =
          linear_gelu(b, linear.inputs[0], linear.inputs[1], bias, linear.attrs.flag("kn"));
      rewriter.substitute(gelu.outputs[0], fused.h);
    });
  }
  return rewriter.apply();
}

bool fuse_linear_dgrad_gelu(Graph& graph) {
  const GraphView view(graph);
  Rewriter rewriter(graph);
  for (const NodeId id : std::vector<NodeId>(graph.order().begin(), graph.order().end())) {
    const Node grad = graph.node(id);
    if (grad.op->name != "gelu_tanh_grad") continue;
    const Node* found = view.producer(grad.inputs[0], "linear_dgrad");
    if (found == nullptr || !view.used_once(grad.inputs[0])) continue;
    const Node dgrad = *found;
    rewriter.replace(id, [&](Builder& b) {
      rewriter.substitute(grad.outputs[0], linear_dgrad_gelu(b, dgrad.inputs[0], dgrad.inputs[1],
                                                             grad.inputs[1], dgrad.attrs.flag("kn")));
    });
  }
  return rewriter.apply();
}

}  // namespace wam
