#include "wam/graph/graph.h"

#include <algorithm>

#include <array>

#include "wam/base/check.h"

namespace wam {

std::string_view name(StateRole role) {
  static constexpr std::array<std::string_view, 7> kNames = {"weights",   "frozen",  "master", "moments",
                                                             "gradients", "scalars", "caches"};
  return kNames[static_cast<size_t>(role)];
}

const Value& Graph::value(ValueId id) const {
  WAM_CHECK(id.valid() && id.index < num_values()) << "value " << id.index;
  return values_[static_cast<size_t>(id.index)];
}

Value& Graph::value(ValueId id) { return const_cast<Value&>(std::as_const(*this).value(id)); }

const Node& Graph::node(NodeId id) const {
  WAM_CHECK(id.valid() && id.index < num_nodes()) << "node " << id.index;
  return nodes_[static_cast<size_t>(id.index)];
}

Node& Graph::node(NodeId id) { return const_cast<Node&>(std::as_const(*this).node(id)); }

ValueId Graph::add_value(Value value) {
  const ValueId id{num_values()};
  if (value.kind == ValueKind::kInput || value.kind == ValueKind::kState) named_[value.name] = id;
  values_.push_back(std::move(value));
  return id;
}

ValueId Graph::add_input(std::string name, TensorType type) {
  WAM_CHECK(!find_named(name).valid()) << "input '" << name << "' exists already";
  return add_value({.type = type, .kind = ValueKind::kInput, .name = std::move(name)});
}

ValueId Graph::add_state(std::string name, TensorType type, Placement placement) {
  WAM_CHECK(!find_named(name).valid()) << "state '" << name << "' exists already";
  return add_value({.type = type,
                    .kind = ValueKind::kState,
                    .name = std::move(name),
                    .placement = std::move(placement)});
}

ValueId Graph::add_constant(HostTensor data, std::string name) {
  const TensorType type = data.type();
  return add_value({.type = type,
                    .kind = ValueKind::kConstant,
                    .name = std::move(name),
                    .constant = std::move(data)});
}

NodeId Graph::add_node(Node node, std::span<const TensorType> output_types) {
  const NodeId id{num_nodes()};
  node.outputs.clear();
  for (size_t i = 0; i < output_types.size(); ++i) {
    node.outputs.push_back(add_value(
        {.type = output_types[i], .producer = id, .output_index = static_cast<int>(i)}));
  }
  nodes_.push_back(std::move(node));
  order_.push_back(id);
  return id;
}

ValueId Graph::find_output(std::string_view name) const {
  for (const NamedValue& output : outputs_) {
    if (output.name == name) return output.value;
  }
  return {};
}

ValueId Graph::find_named(std::string_view name) const {
  const auto found = named_.find(std::string(name));
  return found == named_.end() ? ValueId{} : found->second;
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (const NodeId id : order_) {
    for (ValueId& input : node(id).inputs) {
      if (input == from) input = to;
    }
  }
  for (NamedValue& output : outputs_) {
    if (output.value == from) output.value = to;
  }
  for (StateUpdate& update : updates_) {
    if (update.value == from) update.value = to;
  }
}

void Graph::retire(ValueId id) {
  Value& old = value(id);
  WAM_CHECK(old.kind == ValueKind::kInput || old.kind == ValueKind::kState) << "%" << id.index;
  for (const NodeId node_id : order_) {
    WAM_CHECK(std::ranges::count(node(node_id).inputs, id) == 0) << "'" << old.name << "' is read";
  }
  for (const StateUpdate& update : updates_) WAM_CHECK(update.state != id) << "'" << old.name << "' is updated";
  named_.erase(old.name);
  old.kind = ValueKind::kIntermediate;  // without a producer: nothing may read it
}

std::vector<std::vector<NodeId>> Graph::users() const {
  std::vector<std::vector<NodeId>> users(static_cast<size_t>(num_values()));
  for (const NodeId id : order_) {
    for (const ValueId input : node(id).inputs) {
      auto& list = users[static_cast<size_t>(input.index)];
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  }
  return users;
}

}  // namespace wam
