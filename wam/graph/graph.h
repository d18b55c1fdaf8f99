// The graph: what a step computes, before it is laid out in memory. Single assignment; nodes stand
// in execution order, and every node comes after the producers of its inputs. Graphs are built by
// Builder, rewritten by passes, checked by verify(), and lowered to a Program by plan/.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wam/base/attrs.h"
#include "wam/graph/ids.h"
#include "wam/tensor/host_tensor.h"

namespace wam {

struct OpDef;  // graph/op_def.h

enum class ValueKind : uint8_t {
  kIntermediate,  // produced by a node, lives in the arena
  kInput,         // written by the caller before each run
  kState,         // persists between runs: weights, gradients, moments, caches
  kConstant,      // known when the graph is built: index maps, rotation tables
};

// What a state is for; the categories of the memory plan.
enum class StateRole : uint8_t { kWeight, kFrozen, kMaster, kMoment, kGradient, kScalar, kCache };
std::string_view name(StateRole role);

// Where a state lies: byte offset in a named region that the owner of the run allocates once.
struct Placement {
  std::string region;
  int64_t offset_bytes = 0;
  StateRole role = StateRole::kWeight;
  bool operator==(const Placement&) const = default;
};

struct Value {
  TensorType type;
  ValueKind kind = ValueKind::kIntermediate;
  std::string name;      // inputs and states: unique; others: for reading only
  NodeId producer;       // kIntermediate
  int output_index = 0;  // kIntermediate: which output of the producer
  Placement placement;   // kState
  HostTensor constant;   // kConstant
};

enum class Phase : uint8_t { kForward, kBackward, kUpdate };

struct Node {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Phase phase = Phase::kForward;
  int block = -1;         // transformer block the node belongs to; -1 outside
  bool recomputed = false;  // a clone made by the recompute pass: not to be merged with its twin
  std::string label;      // "blocks.3.self_attn": for plans, profiles and messages
};

// At the end of a run `state` holds `value`. The planner gives both the same memory, so all other
// readers of `state` must stand before the node that produces `value`.
struct StateUpdate {
  ValueId state, value;
};

struct NamedValue {
  std::string name;
  ValueId value;
};

class Graph {
 public:
  explicit Graph(std::string name = "graph") : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  const Value& value(ValueId id) const;
  Value& value(ValueId id);
  const Node& node(NodeId id) const;
  Node& node(NodeId id);
  const TensorType& type(ValueId id) const { return value(id).type; }
  const Shape& shape(ValueId id) const { return value(id).type.shape; }
  int num_values() const { return static_cast<int>(values_.size()); }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }  // removed ones included
  // Execution order.
  std::span<const NodeId> order() const { return order_; }
  void set_order(std::vector<NodeId> order) { order_ = std::move(order); }

  ValueId add_input(std::string name, TensorType type);
  ValueId add_state(std::string name, TensorType type, Placement placement);
  ValueId add_constant(HostTensor data, std::string name);
  // Appends a node at the end of the order; its outputs become new values of `output_types`.
  NodeId add_node(Node node, std::span<const TensorType> output_types);

  void add_output(std::string name, ValueId value) { outputs_.push_back({std::move(name), value}); }
  void add_update(ValueId state, ValueId value) { updates_.push_back({state, value}); }
  const std::vector<NamedValue>& outputs() const { return outputs_; }
  const std::vector<StateUpdate>& updates() const { return updates_; }
  std::vector<NamedValue>& outputs() { return outputs_; }
  std::vector<StateUpdate>& updates() { return updates_; }
  ValueId find_output(std::string_view name) const;  // invalid if there is none
  ValueId find_named(std::string_view name) const;   // an input or state; invalid if none

  // Makes every reader, output and update of `from` use `to`. O(nodes).
  void replace_uses(ValueId from, ValueId to);
  // Takes an input or state that nobody reads or updates out of the graph; its name becomes free.
  void retire(ValueId id);
  // Nodes that read each value, in order; recomputed on each call.
  std::vector<std::vector<NodeId>> users() const;

 private:
  ValueId add_value(Value value);
  std::string name_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<NodeId> order_;
  std::vector<NamedValue> outputs_;
  std::vector<StateUpdate> updates_;
  std::unordered_map<std::string, ValueId> named_;
};

}  // namespace wam
