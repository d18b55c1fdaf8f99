#include "wam/passes/fuse_padded_sums.h"

#include <algorithm>

#include "wam/ops/concat.h"
#include "wam/passes/pattern.h"

namespace wam {
namespace {

struct Part {
  ValueId value;
  int64_t begin, end;
};

class Summands {
 public:
  Summands(const Graph& graph, const GraphView& view) : graph_(graph), view_(view) {}

  // Takes `value` apart into paddings along one dim; false if it holds anything else.
  bool take(ValueId value) {
    const Node* sum = view_.producer(value, "add");
    if (sum != nullptr) {
      return graph_.shape(sum->inputs[0]) == graph_.shape(sum->inputs[1]) &&
             take_inner(sum->inputs[0]) && take_inner(sum->inputs[1]);
    }
    const Node* pad = view_.producer(value, "pad_zeros");
    if (pad == nullptr) return false;
    const auto dim = static_cast<int>(pad->attrs.integer("dim"));
    if (!parts.empty() && dim != this->dim) return false;
    this->dim = dim;
    const int64_t begin = pad->attrs.integer("before");
    parts.push_back({pad->inputs[0], begin, begin + graph_.shape(pad->inputs[0])[dim]});
    return true;
  }

  // Whether the parts lie side by side from 0 to `size`; sorts them.
  bool fill(int64_t size) {
    std::ranges::stable_sort(parts, {}, &Part::begin);
    int64_t at = 0;
    for (const Part& part : parts) {
      if (part.begin != at) return false;
      at = part.end;
    }
    return at == size;
  }

  std::vector<Part> parts;
  int dim = -1;

 private:
  bool take_inner(ValueId value) { return view_.used_once(value) && take(value); }

  const Graph& graph_;
  const GraphView& view_;
};

}  // namespace

bool fuse_padded_sums(Graph& graph) {
  const GraphView view(graph);
  Rewriter rewriter(graph);
  const std::vector<NodeId> order(graph.order().begin(), graph.order().end());
  std::vector<char> taken(static_cast<size_t>(graph.num_nodes()), 0);
  for (auto id = order.rbegin(); id != order.rend(); ++id) {  // the outermost sum first
    const Node sum = graph.node(*id);
    if (sum.op->name != "add" || taken[static_cast<size_t>(id->index)] != 0) continue;
    Summands summands(graph, view);
    if (!summands.take(sum.outputs[0])) continue;
    if (!summands.fill(graph.shape(sum.outputs[0])[summands.dim])) continue;
    // Sums within: a later look at them must not find a smaller pattern.
    std::vector<ValueId> inner(sum.inputs.begin(), sum.inputs.end());
    while (!inner.empty()) {
      const Node* next = view.producer(inner.back(), "add");
      inner.pop_back();
      if (next == nullptr) continue;
      taken[static_cast<size_t>(graph.value(next->outputs[0]).producer.index)] = 1;
      inner.insert(inner.end(), next->inputs.begin(), next->inputs.end());
    }
    rewriter.replace(*id, [&](Builder& b) {
      std::vector<ValueId> parts;
      for (const Part& part : summands.parts) parts.push_back(part.value);
      rewriter.substitute(sum.outputs[0], concat(b, parts, summands.dim));
    });
  }
  return rewriter.apply();
}

}  // namespace wam
