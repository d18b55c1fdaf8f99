#include "wam/plan/lower.h"

#include <algorithm>
#include <map>

#include "wam/base/check.h"
#include "wam/plan/arena.h"
#include "wam/plan/legalize.h"
#include "wam/plan/storage.h"

namespace wam {
namespace {

int64_t align(int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

class Lowering {
 public:
  Lowering(const Graph& graph, const Target& target, const LowerOptions& options)
      : graph_(graph), target_(target), options_(options) {}

  Program run() {
    program_.name = graph_.name();
    legalize(graph_, target_.has_kernel);
    map_ = assign_storage(graph_);
    if (target_.collectives_overlap) keep_for_collectives();
    place_fixed();
    build_steps();
    place_arena();
    name_operands();
    return std::move(program_);
  }

 private:
  int32_t region(const std::string& name) {
    for (size_t i = 0; i < program_.regions.size(); ++i) {
      if (program_.regions[i].name == name) return static_cast<int32_t>(i);
    }
    program_.regions.push_back({.name = name});
    return static_cast<int32_t>(program_.regions.size()) - 1;
  }

  // Unused inputs and states keep their place too: callers write and read them by name.
  void place_fixed() {
    fixed_.resize(static_cast<size_t>(graph_.num_values()));
    int64_t input_bytes = 0;
    for (int i = 0; i < graph_.num_values(); ++i) {
      const Value& value = graph_.value(ValueId{i});
      Location& at = fixed_[static_cast<size_t>(i)];
      if (value.kind == ValueKind::kInput) {
        at = {Location::Space::kRegion, region(options_.input_region), input_bytes};
        input_bytes += align(value.type.size_bytes());
        extend(at, value, -1);
      } else if (value.kind == ValueKind::kState) {
        at = {Location::Space::kRegion, region(value.placement.region), value.placement.offset_bytes};
        extend(at, value, static_cast<int>(value.placement.role));
      } else if (value.kind == ValueKind::kConstant && map_.storage_of[static_cast<size_t>(i)] >= 0) {
        at = {Location::Space::kConstant, static_cast<int32_t>(program_.constants.size()), 0};
        program_.constants.push_back(value.constant);
      }
    }
  }

  void extend(const Location& at, const Value& value, int role) {
    Region& region = program_.regions[static_cast<size_t>(at.region)];
    region.bytes = std::max(region.bytes, align(at.offset_bytes + value.type.size_bytes()));
    if (role < 0) return;
    auto entry = std::ranges::find(region.by_role, static_cast<StateRole>(role),
                                   &std::pair<StateRole, int64_t>::first);
    if (entry == region.by_role.end()) {
      region.by_role.push_back({static_cast<StateRole>(role), value.type.size_bytes()});
    } else {
      entry->second += value.type.size_bytes();
    }
  }

  void build_steps() {
    step_of_.assign(graph_.order().size(), -1);
    for (size_t i = 0; i < graph_.order().size(); ++i) {
      const Node& node = graph_.node(graph_.order()[i]);
      if (node.op->has(kView)) continue;
      step_of_[i] = static_cast<int32_t>(program_.steps.size());
      program_.steps.push_back(make_step(node));
      program_.cost.flops += program_.steps.back().cost.flops;
      program_.cost.bytes += program_.steps.back().cost.bytes;
      node_of_step_.push_back(i);
    }
  }

  Step make_step(const Node& node) {
    Step step{.op = std::string(node.op->name), .attrs = node.attrs, .phase = node.phase,
              .block = node.block, .label = node.label};
    std::vector<TensorType> in, out;
    for (const ValueId id : node.inputs) {
      in.push_back(graph_.type(id));
      step.inputs.push_back({{}, in.back()});
    }
    for (const ValueId id : node.outputs) {
      out.push_back(graph_.type(id));
      step.outputs.push_back({{}, out.back()});
    }
    step.cost = cost_of(*node.op, {in, node.attrs}, out);
    step.workspace_bytes = target_.workspace_bytes(step);
    WAM_CHECK(step.workspace_bytes >= 0) << step.op;
    return step;
  }

  void keep_for_collectives() {
    std::vector<int32_t> positions;
    for (size_t i = 0; i < graph_.order().size(); ++i) {
      if (graph_.node(graph_.order()[i]).op->has(kCollective)) positions.push_back(static_cast<int32_t>(i));
    }
    const auto end = static_cast<int32_t>(graph_.order().size());
    for (size_t i = 0; i < positions.size(); ++i) {
      const int32_t until = i + 2 < positions.size() ? positions[i + 2] : end;
      const Node& node = graph_.node(graph_.order()[static_cast<size_t>(positions[i])]);
      for (const auto* list : {&node.inputs, &node.outputs}) {
        for (const ValueId id : *list) {
          Storage& storage = map_.storages[static_cast<size_t>(map_.storage_of[static_cast<size_t>(id.index)])];
          storage.last = std::max(storage.last, until);
        }
      }
    }
  }

  // Arena buffers: storages without a fixed place, then the workspaces, each alive for one step.
  void place_arena() {
    std::vector<ArenaBuffer> buffers;
    arena_buffer_.assign(map_.storages.size(), -1);
    for (size_t i = 0; i < map_.storages.size(); ++i) {
      const Storage& storage = map_.storages[i];
      if (storage.fixed.valid() || storage.first < 0) continue;
      arena_buffer_[i] = static_cast<int32_t>(buffers.size());
      buffers.push_back({storage.bytes, storage.first, storage.last});
    }
    const size_t num_values = buffers.size();
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const auto position = static_cast<int32_t>(node_of_step_[i]);
      if (program_.steps[i].workspace_bytes > 0) {
        buffers.push_back({program_.steps[i].workspace_bytes, position, position});
      }
    }
    assignment_ = assign_arena(buffers);
    size_t next = num_values;
    for (size_t i = 0; i < program_.steps.size(); ++i) fill_step(i, next);
    report();
  }

  void fill_step(size_t index, size_t& next_workspace) {
    Step& step = program_.steps[index];
    const Node& node = graph_.node(graph_.order()[node_of_step_[index]]);
    for (size_t i = 0; i < node.inputs.size(); ++i) step.inputs[i].at = locate(node.inputs[i]);
    for (size_t i = 0; i < node.outputs.size(); ++i) step.outputs[i].at = locate(node.outputs[i]);
    if (step.workspace_bytes > 0) step.workspace.offset_bytes = assignment_.offsets[next_workspace++];
  }

  Location locate(ValueId id) const {
    const int32_t storage = map_.storage_of[static_cast<size_t>(id.index)];
    if (storage < 0) return fixed_[static_cast<size_t>(id.index)];
    const Storage& s = map_.storages[static_cast<size_t>(storage)];
    Location at;
    if (s.fixed.valid()) {
      at = fixed_[static_cast<size_t>(s.fixed.index)];
    } else {
      at.offset_bytes =
          assignment_.offsets[static_cast<size_t>(arena_buffer_[static_cast<size_t>(storage)])];
    }
    at.offset_bytes += map_.offset_of[static_cast<size_t>(id.index)];
    return at;
  }

  void report() {
    program_.arena.peak = assignment_.peak;
    program_.arena.lower_bound = assignment_.lower_bound;
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      program_.arena.workspace = std::max(program_.arena.workspace, program_.steps[i].workspace_bytes);
      if (static_cast<int32_t>(node_of_step_[i]) <= assignment_.peak_step) {
        program_.arena.peak_step = static_cast<int>(i);
      }
    }
  }

  void name_operands() {
    for (int i = 0; i < graph_.num_values(); ++i) {
      const Value& value = graph_.value(ValueId{i});
      const Operand operand{fixed_[static_cast<size_t>(i)], value.type};
      if (value.kind == ValueKind::kInput) program_.inputs.push_back({value.name, operand});
      if (value.kind == ValueKind::kState) program_.states.push_back({value.name, operand});
    }
    for (const NamedValue& output : graph_.outputs()) {
      program_.outputs.push_back({output.name, {locate(output.value), graph_.type(output.value)}});
    }
  }

  Graph graph_;
  const Target& target_;
  const LowerOptions& options_;
  Program program_;
  StorageMap map_;
  std::vector<Location> fixed_;
  std::vector<int32_t> step_of_;
  std::vector<size_t> node_of_step_;
  std::vector<int32_t> arena_buffer_;
  ArenaAssignment assignment_;
};

}  // namespace

bool lies_in(const Operand& piece, const Operand& whole) {
  const int64_t from = piece.at.offset_bytes - whole.at.offset_bytes;
  return piece.at.space == whole.at.space && piece.at.region == whole.at.region && from >= 0 &&
         from < whole.type.size_bytes();
}

Program lower(const Graph& graph, const Target& target, const LowerOptions& options) {
  return Lowering(graph, target, options).run();
}

}  // namespace wam
