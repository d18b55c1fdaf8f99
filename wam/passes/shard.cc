#include "wam/passes/shard.h"

#include <algorithm>
#include <map>

#include "wam/base/check.h"
#include "wam/graph/builder.h"
#include "wam/ops/add.h"
#include "wam/ops/all_reduce.h"
#include "wam/ops/pack.h"
#include "wam/ops/reduce_scatter.h"
#include "wam/ops/reshape.h"
#include "wam/ops/slice.h"

namespace wam {
namespace {

constexpr int64_t kPartAlignment = 64;  // elements, as parameters are aligned in their buffers

// Nodes to be put into the order, before the node at a position.
using Insertions = std::multimap<int32_t, NodeId>;

class Sharder {
 public:
  Sharder(Graph& graph, const ShardOptions& options)
      : graph_(graph), builder_(graph), options_(options) {
    order_.assign(graph.order().begin(), graph.order().end());
    position_.assign(static_cast<size_t>(graph.num_nodes()), -1);
    for (size_t i = 0; i < order_.size(); ++i) {
      position_[static_cast<size_t>(order_[i].index)] = static_cast<int32_t>(i);
    }
  }

  bool run() {
    if (options_.weights) shard_weights();
    if (options_.gradients) shard_gradients();
    apply();
    return !insertions_.empty();
  }

 private:
  // Readers of one buffer for which it is gathered once.
  struct Section {
    const ShardedBuffer* buffer;
    std::vector<ValueId> states;
    std::vector<int32_t> readers;  // positions, ascending
    Phase phase;
  };

  int64_t part_of(const ShardedBuffer& buffer) const {
    return shard_elements(buffer.num_elements, options_.group.ranks);
  }
  std::string label(const ShardedBuffer& buffer, const char* what) const {
    return buffer.block < 0 ? what : "blocks." + std::to_string(buffer.block) + "." + what;
  }

  std::vector<ValueId> states_in(const std::string& region) const {
    std::vector<ValueId> states;
    for (int i = 0; i < graph_.num_values(); ++i) {
      const Value& value = graph_.value(ValueId{i});
      if (value.kind == ValueKind::kState && value.placement.region == region)
        states.push_back(ValueId{i});
    }
    return states;
  }

  // What a builder call appends to the order belongs before `position` instead.
  template <typename Emit>
  auto emit_at(int32_t position, const Builder::Scope& scope, const Emit& emit) {
    const ScopeGuard guard(builder_, scope);
    const size_t first = graph_.order().size();
    auto result = emit();
    for (size_t i = first; i < graph_.order().size(); ++i)
      insertions_.emplace(position, graph_.order()[i]);
    return result;
  }

  void shard_weights() {
    std::vector<Section> sections;
    for (const ShardedBuffer& buffer : options_.buffers) collect_sections(buffer, sections);
    std::ranges::sort(sections, {}, [](const Section& s) { return s.readers.front(); });
    std::map<const ShardedBuffer*, ValueId> parts;
    for (size_t i = 0; i < sections.size(); ++i) {
      const size_t ahead = i - std::min(i, static_cast<size_t>(options_.prefetch));
      gather(sections[i], sections[ahead].readers.front(), parts);
    }
    for (const ValueId state : retired_) graph_.retire(state);
  }

  void collect_sections(const ShardedBuffer& buffer, std::vector<Section>& sections) {
    const std::vector<ValueId> states = states_in(buffer.weights);
    if (states.empty()) return;
    retired_.insert(retired_.end(), states.begin(), states.end());
    const bool one = buffer.block < 0 || !options_.reshard_after_forward;
    Section forward{&buffer, states, {}, Phase::kForward},
        later{&buffer, states, {}, Phase::kBackward};
    for (size_t i = 0; i < order_.size(); ++i) {
      const Node& node = graph_.node(order_[i]);
      if (std::ranges::find_first_of(node.inputs, states) == node.inputs.end()) continue;
      Section& section = one || node.phase == Phase::kForward ? forward : later;
      section.readers.push_back(static_cast<int32_t>(i));
    }
    for (Section* section : {&forward, &later}) {
      if (!section->readers.empty()) sections.push_back(std::move(*section));
    }
  }

  void gather(const Section& section, int32_t position,
              std::map<const ShardedBuffer*, ValueId>& parts) {
    const ShardedBuffer& buffer = *section.buffer;
    const Value& any = graph_.value(section.states.front());
    const DType dtype = any.type.dtype;
    ValueId& part = parts[&buffer];
    if (!part.valid()) {
      const Placement placement{buffer.weights, 0, any.placement.role};
      part =
          graph_.add_state("shard/" + buffer.weights, {dtype, Shape{part_of(buffer)}}, placement);
    }
    const Builder::Scope scope{label(buffer, "gather"), buffer.block, section.phase};
    const ValueId whole =
        emit_at(position, scope, [&] { return all_gather(builder_, part, options_.group); });
    std::map<ValueId, ValueId> views;
    for (const int32_t reader : section.readers) {
      for (size_t i = 0; i < graph_.node(order_[static_cast<size_t>(reader)]).inputs.size(); ++i) {
        const ValueId input = graph_.node(order_[static_cast<size_t>(reader)]).inputs[i];
        if (std::ranges::count(section.states, input) == 0) continue;
        ValueId& view = views[input];
        if (!view.valid()) {
          view = emit_at(position, scope, [&] { return tensor_of(whole, input); });
        }
        graph_.node(order_[static_cast<size_t>(reader)]).inputs[i] = view;
      }
    }
  }

  ValueId tensor_of(ValueId whole, ValueId state) {
    const Value value = graph_.value(state);
    const int64_t begin = value.placement.offset_bytes / size_bytes(value.type.dtype);
    return reshape(builder_,
                   slice(builder_, whole, 0, begin, begin + value.type.shape.num_elements()),
                   value.type.shape);
  }

  void shard_gradients() {
    for (const ShardedBuffer& buffer : options_.buffers) shard_gradient(buffer);
  }

  void shard_gradient(const ShardedBuffer& buffer) {
    std::map<int64_t, ValueId> pieces;  // by element offset
    std::vector<StateUpdate> others;
    std::vector<ValueId> states;
    int32_t position = 0;
    DType dtype = DType::kF32;
    for (const StateUpdate& update : graph_.updates()) {
      const Value& state = graph_.value(update.state);
      if (state.placement.region != buffer.gradients) {
        others.push_back(update);
        continue;
      }
      dtype = state.type.dtype;
      pieces[state.placement.offset_bytes / size_bytes(dtype)] = update.value;
      states.push_back(update.state);
      const Value& value = graph_.value(update.value);
      if (value.kind == ValueKind::kIntermediate) {
        position = std::max(position, position_[static_cast<size_t>(value.producer.index)] + 1);
      }
    }
    if (pieces.empty()) return;
    graph_.updates() = std::move(others);
    for (const ValueId state : states) {
      if (!is_read(state)) graph_.retire(state);
    }
    const ValueId part = graph_.add_state(
        (options_.scatter ? "grad_shard/" : "flat_grad/") + buffer.weights,
        {dtype, Shape{options_.scatter ? part_of(buffer) : buffer.num_elements}},
        {buffer.gradients, 0, StateRole::kGradient});
    const Builder::Scope scope{label(buffer, "reduce"), buffer.block, Phase::kBackward};
    graph_.add_update(part, emit_at(position, scope, [&] { return reduce(buffer, pieces, part); }));
  }

  bool is_read(ValueId state) const {
    return std::ranges::any_of(order_, [&](NodeId id) {
      return std::ranges::count(graph_.node(id).inputs, state) != 0;
    });
  }

  ValueId reduce(const ShardedBuffer& buffer, const std::map<int64_t, ValueId>& pieces,
                 ValueId part) {
    std::vector<ValueId> values;
    std::vector<int64_t> offsets;
    for (const auto& [offset, value] : pieces) {
      offsets.push_back(offset);
      values.push_back(value);
    }
    if (!options_.scatter) {
      return all_reduce(builder_, pack(builder_, values, offsets, buffer.num_elements), options_.group,
                        options_.wire);
    }
    const ValueId whole = pack(builder_, values, offsets, part_of(buffer) * options_.group.ranks);
    const ValueId sum = reduce_scatter(builder_, whole, options_.group, options_.wire);
    return options_.accumulate ? add(builder_, part, sum) : sum;
  }

  // Equal positions keep the order of insertion.
  void apply() {
    std::vector<NodeId> order;
    auto next = insertions_.begin();
    for (size_t i = 0; i <= order_.size(); ++i) {
      for (; next != insertions_.end() && next->first == static_cast<int32_t>(i); ++next) {
        order.push_back(next->second);
      }
      if (i < order_.size()) order.push_back(order_[i]);
    }
    graph_.set_order(std::move(order));
  }

  Graph& graph_;
  Builder builder_;
  const ShardOptions& options_;
  std::vector<NodeId> order_;
  std::vector<int32_t> position_;  // by node
  Insertions insertions_;
  std::vector<ValueId> retired_;
};

}  // namespace

int64_t shard_elements(int64_t num_elements, int64_t ranks) {
  const int64_t step = ranks * kPartAlignment;
  return (num_elements + step - 1) / step * kPartAlignment;
}

bool shard(Graph& graph, const ShardOptions& options) {
  WAM_CHECK(options.prefetch >= 0 && options.group.ranks >= 1);
  return Sharder(graph, options).run();
}

}  // namespace wam
