#include "wam/passes/fuse_residual_norm.h"

#include <algorithm>

#include "wam/ops/residual_norm.h"
#include "wam/passes/pattern.h"

namespace wam {
namespace {

class Fuser {
 public:
  explicit Fuser(Graph& graph)
      : graph_(graph), view_(graph), users_(graph.users()), rewriter_(graph) {}

  bool run() {
    const std::vector<NodeId> order(graph_.order().begin(), graph_.order().end());
    for (const NodeId id : order) {
      const Node node = graph_.node(id);
      if (node.op->name == "modulate") fuse_modulated(id, node);
      if (node.op->name == "layer_norm" && node.inputs.size() == 3) fuse_affine(id, node);
    }
    for (const NodeId id : order) {
      const Node node = graph_.node(id);
      if (node.op->name == "add" && !taken(node.outputs[0])) fuse_gated_sum(id, node);
    }
    return rewriter_.apply();
  }

 private:
  // x + o or x + gate(o): fills `inputs`; false if `value` is no such sum, or is read before `anchor`
  // where the fused node will stand. `allowed` is the layer norm that the fused node absorbs.
  bool match_sum(ValueId value, NodeId anchor, NodeId allowed, ResidualNormInputs& inputs,
                 Builder::Scope& scope) const {
    const Node* sum = view_.producer(value, "add");
    if (sum == nullptr || graph_.shape(sum->inputs[0]) != graph_.shape(sum->inputs[1])) return false;
    if (graph_.shape(value).ndim() != 3 || taken(value)) return false;
    const int place = position(anchor);
    for (const NodeId user : users_[static_cast<size_t>(value.index)]) {
      if (user != allowed && user != anchor && position(user) < place) return false;
    }
    if (!match_gate(*sum, inputs)) {
      inputs.x = sum->inputs[0];
      inputs.o = sum->inputs[1];
    }
    scope = {sum->label, sum->block, sum->phase, sum->recomputed};
    return true;
  }

  bool match_gate(const Node& sum, ResidualNormInputs& inputs) const {
    const Node* gate = view_.producer(sum.inputs[1], "gate");
    if (gate == nullptr || !view_.used_once(sum.inputs[1])) return false;
    if (inputs.index.valid() && inputs.index != gate->inputs[2]) return false;
    inputs.x = sum.inputs[0];
    inputs.o = gate->inputs[0];
    inputs.gate = gate->inputs[1];
    inputs.index = gate->inputs[2];
    return true;
  }

  void fuse_modulated(NodeId id, const Node& modulate) {
    const Node* norm = view_.producer(modulate.inputs[0], "layer_norm");
    if (norm == nullptr || norm->inputs.size() != 1 || !view_.used_once(norm->outputs[0]) ||
        !view_.unused(norm->outputs[1])) {
      return;
    }
    ResidualNormInputs inputs{.scale = modulate.inputs[1], .shift = modulate.inputs[2],
                              .index = modulate.inputs[3]};
    fuse(id, *norm, modulate.outputs[0], inputs);
  }

  void fuse_affine(NodeId id, const Node& norm) {
    if (!view_.unused(norm.outputs[1])) return;
    const ResidualNormInputs inputs{.weight = norm.inputs[1], .bias = norm.inputs[2]};
    fuse(id, norm, norm.outputs[0], inputs);
  }

  void fuse(NodeId anchor, const Node& norm, ValueId h, ResidualNormInputs inputs) {
    const double eps = norm.attrs.real("eps");
    const ValueId sum = norm.inputs[0];
    const Node& at = graph_.node(anchor);
    Builder::Scope scope{at.label, at.block, at.phase, at.recomputed};
    const NodeId norm_id = graph_.value(norm.outputs[0]).producer;
    const bool residual = match_sum(sum, anchor, norm_id, inputs, scope);
    if (!residual) {
      if (inputs.weight.valid()) return;  // plain layer norm: nothing to fuse
      inputs.x = sum;
    }
    if (norm_id != anchor) rewriter_.drop(norm_id);
    rewriter_.replace(anchor, [&](Builder& b) {
      ScopeGuard guard(b, scope);
      const ResidualNorm fused = residual_norm(b, inputs, eps);
      rewriter_.substitute(h, fused.h);
      if (!residual) return;
      rewriter_.substitute(sum, fused.x);
      taken_.push_back(sum);
    });
  }

  // What no norm follows: the end of the last block.
  void fuse_gated_sum(NodeId id, const Node& sum) {
    ResidualNormInputs inputs;
    if (!match_gate(sum, inputs)) return;
    rewriter_.replace(id, [&](Builder& b) {
      rewriter_.substitute(sum.outputs[0], residual_norm(b, inputs, 0).x);
    });
  }

  bool taken(ValueId sum) const { return std::ranges::count(taken_, sum) != 0; }
  int position(NodeId id) const { return view_.position(graph_.node(id).outputs[0]); }

  Graph& graph_;
  GraphView view_;
  std::vector<std::vector<NodeId>> users_;
  Rewriter rewriter_;
  std::vector<ValueId> taken_;
};

}  // namespace

bool fuse_residual_norm(Graph& graph) { return Fuser(graph).run(); }

}  // namespace wam
