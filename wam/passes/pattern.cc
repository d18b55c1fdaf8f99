#include "wam/passes/pattern.h"

#include <unordered_map>

namespace wam {

GraphView::GraphView(Graph& graph)
    : graph_(graph),
      uses_(static_cast<size_t>(graph.num_values()), 0),
      first_use_(static_cast<size_t>(graph.num_values()), static_cast<int>(graph.order().size())),
      position_(static_cast<size_t>(graph.num_nodes()), -1) {
  for (size_t i = 0; i < graph.order().size(); ++i) {
    position_[static_cast<size_t>(graph.order()[i].index)] = static_cast<int>(i);
    for (const ValueId input : graph.node(graph.order()[i]).inputs) {
      const auto at = static_cast<size_t>(input.index);
      if (uses_[at]++ == 0) first_use_[at] = static_cast<int>(i);
    }
  }
  for (const NamedValue& output : graph.outputs()) ++uses_[static_cast<size_t>(output.value.index)];
  for (const StateUpdate& update : graph.updates()) ++uses_[static_cast<size_t>(update.value.index)];
}

const Node* GraphView::producer(ValueId value, std::string_view op) const {
  const Value& v = graph_.value(value);
  if (v.kind != ValueKind::kIntermediate) return nullptr;
  const Node& node = graph_.node(v.producer);
  return node.op->name == op ? &node : nullptr;
}

int GraphView::position(ValueId value) const {
  const Value& v = graph_.value(value);
  return v.kind == ValueKind::kIntermediate ? position_[static_cast<size_t>(v.producer.index)] : -1;
}

bool Rewriter::apply() {
  if (moved_.empty()) return false;
  std::unordered_map<ValueId, ValueId> map(substituted_.begin(), substituted_.end());
  const auto resolve = [&](ValueId& id) {
    for (auto found = map.find(id); found != map.end(); found = map.find(id)) id = found->second;
  };
  std::unordered_map<NodeId, const std::vector<NodeId>*> at;
  for (const Move& move : moved_) at[move.anchor] = &move.nodes;
  std::vector<NodeId> order;
  for (const NodeId id : graph_.order()) {
    const auto found = at.find(id);
    if (dropped_.contains(id)) continue;
    if (found == at.end()) {
      order.push_back(id);
    } else {
      order.insert(order.end(), found->second->begin(), found->second->end());
    }
  }
  for (const NodeId id : order) {
    for (ValueId& input : graph_.node(id).inputs) resolve(input);
  }
  for (NamedValue& output : graph_.outputs()) resolve(output.value);
  for (StateUpdate& update : graph_.updates()) resolve(update.value);
  graph_.set_order(std::move(order));
  return true;
}

}  // namespace wam
