#include "wam/plan/legalize.h"

#include <unordered_map>

#include "wam/base/error.h"
#include "wam/graph/builder.h"

namespace wam {
namespace {

class Legalizer {
 public:
  Legalizer(Graph& graph, const std::function<bool(std::string_view)>& has_kernel)
      : graph_(graph), builder_(graph), has_kernel_(has_kernel) {}

  bool run() {
    const std::vector<NodeId> order(graph_.order().begin(), graph_.order().end());
    for (const NodeId id : order) place(id);
    graph_.set_order(std::move(order_));
    for (NamedValue& output : graph_.outputs()) output.value = mapped(output.value);
    for (StateUpdate& update : graph_.updates()) update.value = mapped(update.value);
    return changed_;
  }

 private:
  ValueId mapped(ValueId id) const {
    const auto found = replaced_.find(id);
    return found == replaced_.end() ? id : mapped(found->second);
  }

  void place(NodeId id) {
    for (ValueId& input : graph_.node(id).inputs) input = mapped(input);
    const Node node = graph_.node(id);
    if (node.op->has(kView) || has_kernel_(node.op->name)) {
      order_.push_back(id);
      return;
    }
    if (node.op->decompose == nullptr) {
      throw PlanError({.where = node.label,
                       .what = "op '" + std::string(node.op->name) + "' cannot run on this device",
                       .expected = "a kernel or a decomposition",
                       .remedy = "This is a gap in the engine; please report it."});
    }
    changed_ = true;
    ScopeGuard scope(builder_, {node.label, node.block, node.phase, node.recomputed});
    const size_t first = graph_.order().size();
    const std::vector<ValueId> outputs = node.op->decompose(builder_, node.inputs, node.attrs);
    for (size_t i = 0; i < outputs.size(); ++i) replaced_[node.outputs[i]] = outputs[i];
    const std::vector<NodeId> plain(graph_.order().begin() + static_cast<int64_t>(first),
                                    graph_.order().end());
    for (const NodeId inner : plain) place(inner);
  }

  Graph& graph_;
  Builder builder_;
  const std::function<bool(std::string_view)>& has_kernel_;
  std::vector<NodeId> order_;
  std::unordered_map<ValueId, ValueId> replaced_;
  bool changed_ = false;
};

}  // namespace

bool legalize(Graph& graph, const std::function<bool(std::string_view)>& has_kernel) {
  return Legalizer(graph, has_kernel).run();
}

}  // namespace wam
