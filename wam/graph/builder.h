// Appends nodes to a graph, checking each op's rule as it goes. Ops offer functions that take a
// Builder first: `ValueId y = add(b, x, z);`.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "wam/graph/graph.h"
#include "wam/graph/op_def.h"

namespace wam {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  const TensorType& type(ValueId id) const { return graph_.type(id); }
  const Shape& shape(ValueId id) const { return graph_.shape(id); }
  DType dtype(ValueId id) const { return graph_.type(id).dtype; }

  // All outputs / the only output of a new node.
  std::vector<ValueId> emit(const OpDef& op, std::span<const ValueId> inputs, Attrs attrs = {});
  std::vector<ValueId> emit(const OpDef& op, std::initializer_list<ValueId> inputs,
                            Attrs attrs = {}) {
    return emit(op, std::span<const ValueId>(inputs.begin(), inputs.size()), std::move(attrs));
  }
  ValueId emit1(const OpDef& op, std::initializer_list<ValueId> inputs, Attrs attrs = {}) {
    return emit(op, inputs, std::move(attrs)).front();
  }

  // What new nodes are marked with.
  struct Scope {
    std::string label;
    int block = -1;
    Phase phase = Phase::kForward;
    bool recomputed = false;
  };
  const Scope& scope() const { return scope_; }
  void set_scope(Scope scope) { scope_ = std::move(scope); }

 private:
  Graph& graph_;
  Scope scope_;
};

// Sets the scope for a C++ block: `ScopeGuard guard(b, {.label = "blocks.0.ffn", .block = 0});`
class ScopeGuard {
 public:
  ScopeGuard(Builder& builder, Builder::Scope scope) : builder_(builder), saved_(builder.scope()) {
    builder.set_scope(std::move(scope));
  }
  ~ScopeGuard() { builder_.set_scope(saved_); }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Builder& builder_;
  Builder::Scope saved_;
};

}  // namespace wam
