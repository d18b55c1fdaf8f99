// What fusing passes share: reading a graph backwards from a node, and putting a fused node where a
// plain one stood.
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "wam/graph/builder.h"

namespace wam {

// A graph's users and positions, taken once before a pass starts to rewrite.
class GraphView {
 public:
  explicit GraphView(Graph& graph);

  // The node that produces `value` if it applies `op`; null otherwise.
  const Node* producer(ValueId value, std::string_view op) const;
  // Number of reads of `value`, outputs and updates counted.
  int num_uses(ValueId value) const { return uses_[static_cast<size_t>(value.index)]; }
  bool used_once(ValueId value) const { return num_uses(value) == 1; }
  bool unused(ValueId value) const { return num_uses(value) == 0; }
  // Place in the order of the node that produces `value`; -1 for inputs, states and constants.
  int position(ValueId value) const;
  // Place of the first node that reads `value`; the order's length if none does.
  int first_use(ValueId value) const { return first_use_[static_cast<size_t>(value.index)]; }

 private:
  const Graph& graph_;
  std::vector<int> uses_, first_use_, position_;
};

// Collects nodes to be put in place of others; apply() rewrites the order and all uses at once.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph), builder_(graph) {}
  // Emits with the scope of `anchor` and stands in its place in the order; `replaced` outputs are
  // read from `with` from then on. The anchor itself is dropped.
  template <typename Emit>
  void replace(NodeId anchor, const Emit& emit) {
    const Node& node = graph_.node(anchor);
    ScopeGuard scope(builder_, {node.label, node.block, node.phase, node.recomputed});
    const size_t first = graph_.order().size();
    emit(builder_);
    moved_.push_back({anchor, {graph_.order().begin() + static_cast<int64_t>(first), graph_.order().end()}});
    // Taken out again; apply() puts them where the anchor stood.
    graph_.set_order({graph_.order().begin(), graph_.order().begin() + static_cast<int64_t>(first)});
  }
  void substitute(ValueId from, ValueId to) { substituted_.push_back({from, to}); }
  // Takes a node out that a fused one absorbs; nothing may read its outputs any more.
  void drop(NodeId id) { dropped_.insert(id); }
  // True if anything was replaced.
  bool apply();

 private:
  struct Move {
    NodeId anchor;
    std::vector<NodeId> nodes;
  };
  Graph& graph_;
  Builder builder_;
  std::vector<Move> moved_;
  std::vector<std::pair<ValueId, ValueId>> substituted_;
  std::unordered_set<NodeId> dropped_;
};

}  // namespace wam
