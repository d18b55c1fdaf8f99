#include "wam/graph/verify.h"

#include <unordered_map>
#include <unordered_set>

#include "wam/base/check.h"
#include "wam/graph/op_def.h"

namespace wam {
namespace {

void check_node(const Graph& graph, NodeId id, const std::unordered_set<int32_t>& defined) {
  const Node& node = graph.node(id);
  WAM_CHECK(node.op != nullptr) << "node " << id.index;
  std::vector<TensorType> types;
  for (const ValueId input : node.inputs) {
    const Value& value = graph.value(input);
    WAM_CHECK(value.kind != ValueKind::kIntermediate || defined.contains(input.index))
        << "node " << id.index << " " << node.op->name << " (" << node.label << ") reads %"
        << input.index << " before it is produced";
    types.push_back(value.type);
  }
  const std::vector<TensorType> expected = node.op->infer({types, node.attrs});
  WAM_CHECK(expected.size() == node.outputs.size()) << node.op->name << " in " << node.label;
  for (size_t i = 0; i < expected.size(); ++i) {
    const Value& output = graph.value(node.outputs[i]);
    WAM_CHECK(output.type == expected[i] && output.producer == id &&
              output.output_index == static_cast<int>(i))
        << node.op->name << " output " << i << " is " << output.type.to_string() << ", rule says "
        << expected[i].to_string();
  }
}

void check_available(const Graph& graph, ValueId id, const std::unordered_set<int32_t>& defined,
                     const std::string& what) {
  WAM_CHECK(graph.value(id).kind != ValueKind::kIntermediate || defined.contains(id.index))
      << what << " is never produced (%" << id.index << ")";
}

}  // namespace

void verify(const Graph& graph) {
  std::unordered_set<int32_t> defined, placed;
  for (const NodeId id : graph.order()) {
    WAM_CHECK(placed.insert(id.index).second) << "node " << id.index << " stands twice in the order";
    check_node(graph, id, defined);
    for (const ValueId output : graph.node(id).outputs) defined.insert(output.index);
  }
  for (const NamedValue& output : graph.outputs()) {
    check_available(graph, output.value, defined, "output '" + output.name + "'");
  }
  std::unordered_set<int32_t> updated;
  for (const StateUpdate& update : graph.updates()) {
    const Value& state = graph.value(update.state);
    WAM_CHECK(state.kind == ValueKind::kState) << "update of %" << update.state.index;
    WAM_CHECK(updated.insert(update.state.index).second) << "'" << state.name << "' updated twice";
    WAM_CHECK(state.type == graph.type(update.value)) << "update of '" << state.name << "'";
    check_available(graph, update.value, defined, "update of '" + state.name + "'");
  }
}

}  // namespace wam
