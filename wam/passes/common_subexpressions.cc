#include "wam/passes/common_subexpressions.h"

#include <cstring>
#include <map>
#include <string>

#include "wam/graph/op_def.h"

namespace wam {
namespace {

class Merger {
 public:
  explicit Merger(Graph& graph) : graph_(graph) {
    mapped_.reserve(static_cast<size_t>(graph.num_values()));
    for (int i = 0; i < graph.num_values(); ++i) mapped_.push_back(ValueId{i});
  }

  bool run() {
    merge_constants();
    std::vector<NodeId> kept;
    for (const NodeId id : graph_.order()) {
      Node& node = graph_.node(id);
      for (ValueId& input : node.inputs) input = at(input);
      if (!merge(node, id)) kept.push_back(id);
    }
    for (NamedValue& output : graph_.outputs()) output.value = at(output.value);
    for (StateUpdate& update : graph_.updates()) update.value = at(update.value);
    graph_.set_order(std::move(kept));
    return changed_;
  }

 private:
  ValueId& at(ValueId id) { return mapped_[static_cast<size_t>(id.index)]; }

  void merge_constants() {
    std::map<std::pair<std::string, std::string>, ValueId> seen;
    for (int i = 0; i < graph_.num_values(); ++i) {
      const Value& value = graph_.value(ValueId{i});
      if (value.kind != ValueKind::kConstant) continue;
      const std::string bytes(static_cast<const char*>(value.constant.data()),
                              static_cast<size_t>(value.constant.size_bytes()));
      const auto [entry, fresh] = seen.try_emplace({value.type.to_string(), bytes}, ValueId{i});
      if (!fresh) at(ValueId{i}) = entry->second;
    }
  }

  bool merge(const Node& node, NodeId id) {
    if (node.recomputed || node.op->has(kSideEffect) || node.op->has(kCollective)) return false;
    std::string key(node.op->name);
    key += node.attrs.to_string();
    for (const ValueId input : node.inputs) key += "," + std::to_string(input.index);
    const auto [entry, fresh] = seen_.try_emplace(std::move(key), id);
    if (fresh) return false;
    const Node& twin = graph_.node(entry->second);
    for (size_t i = 0; i < node.outputs.size(); ++i) at(node.outputs[i]) = twin.outputs[i];
    changed_ = true;
    return true;
  }

  Graph& graph_;
  std::vector<ValueId> mapped_;
  std::map<std::string, NodeId> seen_;
  bool changed_ = false;
};

}  // namespace

bool merge_common_subexpressions(Graph& graph) { return Merger(graph).run(); }

}  // namespace wam
