#include "wam/passes/fuse_bias_gradients.h"

#include <map>

#include "wam/ops/op_list.h"
#include "wam/passes/pattern.h"

namespace wam {
namespace {

// Output of `node` whose sum over rows it can give; -1: none.
int summed_output(const Node& node) {
  if (node.attrs.flag("bias_grad")) return -1;
  if (node.op == &qk_norm_rope_grad_op) return 0;
  if (node.op == &residual_norm_grad_op) return node.attrs.text("residual") == "gate" ? 1 : 0;
  return -1;
}

// The node that can give the bias gradient of `wgrad`; null if there is none.
const Node* find_maker(const Graph& graph, const Node& wgrad) {
  if (!wgrad.attrs.flag("bias") || wgrad.attrs.flag("accumulate")) return nullptr;
  const Value& dy = graph.value(wgrad.inputs[0]);
  if (dy.kind != ValueKind::kIntermediate) return nullptr;
  const Node& maker = graph.node(dy.producer);
  return summed_output(maker) == dy.output_index ? &maker : nullptr;
}

}  // namespace

bool fuse_bias_gradients(Graph& graph) {
  Rewriter rewriter(graph);
  std::map<NodeId, NodeId> wgrads;  // by the node that makes dy; the first one
  for (const NodeId id : graph.order()) {
    const Node& wgrad = graph.node(id);
    if (wgrad.op != &linear_wgrad_op || find_maker(graph, wgrad) == nullptr) continue;
    wgrads.try_emplace(graph.value(wgrad.inputs[0]).producer, id);
  }
  for (const auto& [maker_id, wgrad_id] : wgrads) {
    const Node maker = graph.node(maker_id), wgrad = graph.node(wgrad_id);
    rewriter.replace(maker_id, [&](Builder& b) {
      Attrs attrs = maker.attrs;
      attrs.set("bias_grad", true);
      const std::vector<ValueId> outputs = b.emit(*maker.op, maker.inputs, attrs);
      for (size_t i = 0; i < maker.outputs.size(); ++i) {
        rewriter.substitute(maker.outputs[i], outputs[i]);
      }
      rewriter.substitute(wgrad.outputs[1], outputs.back());
    });
    rewriter.replace(wgrad_id, [&](Builder& b) {
      Attrs attrs = wgrad.attrs;
      attrs.set("bias", false);
      rewriter.substitute(wgrad.outputs[0], b.emit(linear_wgrad_op, wgrad.inputs, attrs).front());
    });
  }
  return rewriter.apply();
}

bool fuse_gradient_sums(Graph& graph) {
  const GraphView view(graph);
  Rewriter rewriter(graph);
  const std::vector<NodeId> order(graph.order().begin(), graph.order().end());
  for (const NodeId id : order) {
    const Node grad = graph.node(id);
    if (grad.op != &qk_norm_rope_grad_op || grad.attrs.flag("two_grads")) continue;
    const Node* sum = view.producer(grad.inputs[0], "add");
    if (sum == nullptr || !view.used_once(grad.inputs[0])) continue;
    if (graph.type(sum->inputs[0]) != graph.type(sum->inputs[1])) continue;
    std::vector<ValueId> inputs = sum->inputs;
    inputs.insert(inputs.end(), grad.inputs.begin() + 1, grad.inputs.end());
    rewriter.replace(id, [&](Builder& b) {
      Attrs attrs = grad.attrs;
      attrs.set("two_grads", true);
      const std::vector<ValueId> outputs = b.emit(qk_norm_rope_grad_op, inputs, attrs);
      for (size_t i = 0; i < outputs.size(); ++i) rewriter.substitute(grad.outputs[i], outputs[i]);
    });
  }
  return rewriter.apply();
}

}  // namespace wam
