#include "wam/passes/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/graph/builder.h"
#include "wam/graph/op_def.h"

namespace wam {
namespace {

bool is_forward(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  return value.kind == ValueKind::kIntermediate &&
         graph.node(value.producer).phase == Phase::kForward;
}

bool is_view(const Graph& graph, ValueId id) {
  return graph.node(graph.value(id).producer).op->has(kView);
}

// The value whose memory `id` looks into.
ValueId base_of(const Graph& graph, ValueId id) {
  while (is_forward(graph, id) && is_view(graph, id)) {
    id = graph.node(graph.value(id).producer).inputs[0];
  }
  return id;
}

std::string name_of(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  const Node& node = graph.node(value.producer);
  std::string label = node.label;
  if (label.starts_with("blocks.")) {
    const size_t dot = label.find('.', 7);
    label = dot == std::string::npos ? "block" : label.substr(dot + 1);
  }
  return fmt::format("{}/{}:{}", label, node.op->name, value.output_index);
}

double seconds_of(const Graph& graph, const Node& node, const RecomputeOptions& options) {
  std::vector<TensorType> in, out;
  for (const ValueId input : node.inputs) in.push_back(graph.type(input));
  for (const ValueId output : node.outputs) out.push_back(graph.type(output));
  const OpCost cost = cost_of(*node.op, {in, node.attrs}, out);
  return std::max(cost.flops / options.flops_per_second, cost.bytes / options.bytes_per_second);
}

// Which forward values the backward half keeps, and which of them a policy drops.
class Selection {
 public:
  Selection(const Graph& graph, const RecomputeOptions& options) : graph_(graph), options_(options) {
    std::set<ValueId> kept;
    for (const NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (node.phase == Phase::kForward) continue;
      for (const ValueId input : node.inputs) {
        const ValueId base = base_of(graph, input);
        if (is_forward(graph, base)) kept.insert(base);
      }
    }
    candidates_.assign(kept.begin(), kept.end());
    for (const NamedValue& output : graph.outputs()) pinned_.insert(base_of(graph, output.value));
  }

  int64_t kept_bytes() const {
    int64_t total = 0;
    for (const ValueId id : candidates_) {
      if (!dropped_.contains(id)) total += graph_.type(id).size_bytes();
    }
    return total;
  }

  const std::set<ValueId>& dropped() const { return dropped_; }

  void drop_full() { dropped_ = droppable(); }

  void drop_listed() {
    std::set<std::string> names;
    for (const ValueId id : candidates_) names.insert(name_of(graph_, id));
    const std::vector<std::string> known(names.begin(), names.end());
    for (const std::string& name : options_.drop) {
      if (names.contains(name)) continue;
      throw ConfigError({.where = "recompute",
                         .what = "no kept value has this name",
                         .got = "'" + name + "'",
                         .expected = "one of " + join(known, ", "),
                         .remedy = name_hint(name, known)});
    }
    for (const ValueId id : candidates_) {
      if (std::ranges::count(options_.drop, name_of(graph_, id)) != 0 && !pinned_.contains(id)) {
        dropped_.insert(id);
      }
    }
  }

  // Groups of like values over blocks, cheapest seconds per byte first; the last group is dropped
  // block by block, from the first block on: its values are kept longest.
  void drop_to_budget() {
    const std::set<ValueId> allowed = droppable();
    while (kept_bytes() > options_.budget_bytes) {
      const std::vector<ValueId> group = cheapest_group(allowed);
      if (group.empty()) break;
      for (const ValueId id : group) {
        dropped_.insert(id);
        if (kept_bytes() <= options_.budget_bytes) return;
      }
    }
    if (kept_bytes() > options_.budget_bytes) {
      throw PlanError({.where = "recompute",
                       .what = "the activations cannot be made to fit",
                       .got = format_bytes(kept_bytes()) + " kept with everything dropped that may be",
                       .expected = "at most " + format_bytes(options_.budget_bytes),
                       .remedy = "Lower micro_batch_size."});
    }
  }

 private:
  // Per block, everything but what later blocks read; of a node's outputs that cross, those that
  // follow cheaply from another may go too. What crosses stays whatever the policy: without it a
  // block could only be computed again from the one before, and all of them would be alive at once.
  std::set<ValueId> droppable() const {
    std::set<ValueId> crossing, result;
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (node.phase != Phase::kForward) continue;
      for (const ValueId input : node.inputs) {
        const ValueId base = base_of(graph_, input);
        if (is_forward(graph_, base) && block_of(base) != node.block) crossing.insert(base);
      }
    }
    for (const ValueId id : candidates_) {
      if (block_of(id) < 0 || pinned_.contains(id)) continue;
      if (!crossing.contains(id) || follows_from_sibling(id, crossing)) result.insert(id);
    }
    return result;
  }

  int block_of(ValueId id) const { return graph_.node(graph_.value(id).producer).block; }

  bool follows_from_sibling(ValueId id, const std::set<ValueId>& crossing) const {
    const Value& value = graph_.value(id);
    const Node& node = graph_.node(value.producer);
    return node.op->rematerialise != nullptr && value.output_index > 0 &&
           crossing.contains(node.outputs[0]);
  }

  // Time to compute `id` again from what is kept now: its producer and, recursively, dropped inputs.
  double seconds_again(ValueId id, std::set<NodeId>& counted) const {
    const NodeId producer = graph_.value(id).producer;
    if (!counted.insert(producer).second) return 0;
    const Node& node = graph_.node(producer);
    if (has_kept_sibling(node, id)) {
      return 3.0 * static_cast<double>(graph_.type(id).size_bytes()) / options_.bytes_per_second;
    }
    double seconds = seconds_of(graph_, node, options_);
    for (const ValueId input : node.inputs) {
      const ValueId base = base_of(graph_, input);
      if (is_forward(graph_, base) && (dropped_.contains(base) || !is_candidate(base))) {
        seconds += seconds_again(base, counted);
      }
    }
    return seconds;
  }

  bool is_candidate(ValueId id) const { return std::ranges::binary_search(candidates_, id); }

  bool has_kept_sibling(const Node& node, ValueId id) const {
    if (node.op->rematerialise == nullptr) return false;
    return std::ranges::any_of(node.outputs, [&](ValueId other) {
      return other != id && is_candidate(other) && !dropped_.contains(other) &&
             graph_.type(other) == graph_.type(id);
    });
  }

  std::vector<ValueId> cheapest_group(const std::set<ValueId>& allowed) const {
    std::map<std::string, std::vector<ValueId>> groups;
    for (const ValueId id : candidates_) {
      if (allowed.contains(id) && !dropped_.contains(id)) {
        groups[name_of(graph_, id)].push_back(id);
      }
    }
    double best = 0;
    const std::vector<ValueId>* chosen = nullptr;
    for (const auto& [name, group] : groups) {
      std::set<NodeId> counted;
      const double rate = seconds_again(group.front(), counted) /
                          static_cast<double>(graph_.type(group.front()).size_bytes());
      if (chosen == nullptr || rate < best) {
        best = rate;
        chosen = &group;
      }
    }
    return chosen == nullptr ? std::vector<ValueId>{} : *chosen;
  }

  const Graph& graph_;
  const RecomputeOptions& options_;
  std::vector<ValueId> candidates_;  // sorted
  std::set<ValueId> pinned_;         // outputs of the program live to its end anyway
  std::set<ValueId> dropped_;
};

// Clones what the backward half needs in front of the node that needs it.
class Cloner {
 public:
  Cloner(Graph& graph, const std::set<ValueId>& dropped, const RecomputeOptions& options,
         RecomputeReport& report)
      : graph_(graph), builder_(graph), dropped_(dropped), options_(options), report_(report) {}

  void run() {
    collect_kept();
    const std::vector<NodeId> order(graph_.order().begin(), graph_.order().end());
    std::vector<NodeId> result;
    for (const NodeId id : order) {
      if (graph_.node(id).phase != Phase::kForward) {
        const size_t first = graph_.order().size();
        const std::vector<ValueId> inputs = graph_.node(id).inputs;
        std::vector<ValueId> fetched;
        for (const ValueId input : inputs) fetched.push_back(fetch(input));
        graph_.node(id).inputs = fetched;
        result.insert(result.end(), graph_.order().begin() + static_cast<int64_t>(first),
                      graph_.order().end());
      }
      result.push_back(id);
    }
    graph_.set_order(std::move(result));
  }

 private:
  // Forward values the backward half reads and nobody drops: available without work.
  void collect_kept() {
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (node.phase == Phase::kForward) continue;
      for (const ValueId input : node.inputs) {
        const ValueId base = base_of(graph_, input);
        if (is_forward(graph_, base) && !dropped_.contains(base)) kept_.insert(base);
      }
    }
  }

  ValueId fetch(ValueId id) {
    if (!is_forward(graph_, id)) return id;
    const ValueId base = base_of(graph_, id);
    if (!is_forward(graph_, base) || kept_.contains(base)) return id;
    const auto known = again_.find(id);
    if (known != again_.end()) return known->second;
    compute(id);
    return again_.at(id);
  }

  void compute(ValueId id) {
    const Value value = graph_.value(id);
    const Node node = graph_.node(value.producer);
    if (rematerialise(node, value.output_index)) return;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(fetch(input));
    ScopeGuard scope(builder_, {node.label, node.block, Phase::kBackward, /*recomputed=*/true});
    const std::vector<ValueId> outputs = builder_.emit(*node.op, inputs, node.attrs);
    for (size_t i = 0; i < outputs.size(); ++i) again_[node.outputs[i]] = outputs[i];
    count(graph_.node(graph_.order().back()));
  }

  bool rematerialise(const Node& node, int output) {
    if (node.op->rematerialise == nullptr) return false;
    std::vector<ValueId> available;
    for (const ValueId sibling : node.outputs) {
      available.push_back(kept_.contains(sibling) ? sibling : ValueId{});
    }
    const std::function<ValueId(ValueId)> fetch_input = [this](ValueId id) { return fetch(id); };
    ScopeGuard scope(builder_, {node.label, node.block, Phase::kBackward, /*recomputed=*/true});
    const size_t first = graph_.order().size();
    const ValueId cheap = node.op->rematerialise(
        builder_, {node.attrs, node.inputs, available, output, fetch_input});
    if (!cheap.valid()) return false;
    for (size_t i = first; i < graph_.order().size(); ++i) count(graph_.node(graph_.order()[i]));
    again_[node.outputs[static_cast<size_t>(output)]] = cheap;
    return true;
  }

  void count(const Node& node) {
    if (node.op->has(kView)) return;
    std::vector<TensorType> in, out;
    for (const ValueId input : node.inputs) in.push_back(graph_.type(input));
    for (const ValueId output : node.outputs) out.push_back(graph_.type(output));
    const OpCost cost = cost_of(*node.op, {in, node.attrs}, out);
    report_.recomputed_flops += cost.flops;
    report_.recomputed_bytes += cost.bytes;
  }

  Graph& graph_;
  Builder builder_;
  const std::set<ValueId>& dropped_;
  const RecomputeOptions& options_;
  RecomputeReport& report_;
  std::set<ValueId> kept_;
  std::unordered_map<ValueId, ValueId> again_;
};

}  // namespace

RecomputeReport recompute(Graph& graph, const RecomputeOptions& options) {
  RecomputeReport report;
  std::set<ValueId> dropped;
  {
    Selection selection(graph, options);
    report.kept_bytes_before = selection.kept_bytes();
    if (options.policy == RecomputePolicy::kFull) selection.drop_full();
    if (options.policy == RecomputePolicy::kList) selection.drop_listed();
    if (options.policy == RecomputePolicy::kBudget) selection.drop_to_budget();
    report.kept_bytes_after = selection.kept_bytes();
    dropped = selection.dropped();
  }
  std::map<std::string, int> names;
  for (const ValueId id : dropped) ++names[name_of(graph, id)];
  for (const auto& [name, count] : names) report.dropped.push_back(fmt::format("{} x{}", name, count));
  if (!dropped.empty()) Cloner(graph, dropped, options, report).run();
  return report;
}

}  // namespace wam
