#include "wam/passes/dead_code.h"

#include <algorithm>

#include "wam/graph/op_def.h"

namespace wam {

bool remove_dead_code(Graph& graph) {
  std::vector<char> needed(static_cast<size_t>(graph.num_values()), 0);
  const auto mark = [&](ValueId id) { needed[static_cast<size_t>(id.index)] = 1; };
  for (const NamedValue& output : graph.outputs()) mark(output.value);
  for (const StateUpdate& update : graph.updates()) mark(update.value);
  std::vector<NodeId> kept;
  for (size_t i = graph.order().size(); i-- > 0;) {
    const NodeId id = graph.order()[i];
    const Node& node = graph.node(id);
    const bool live = node.op->has(kSideEffect) || node.op->has(kCollective) ||
                      std::ranges::any_of(node.outputs, [&](ValueId output) {
                        return needed[static_cast<size_t>(output.index)] != 0;
                      });
    if (!live) continue;
    for (const ValueId input : node.inputs) mark(input);
    kept.push_back(id);
  }
  std::ranges::reverse(kept);
  const bool changed = kept.size() != graph.order().size();
  graph.set_order(std::move(kept));
  return changed;
}

}  // namespace wam
