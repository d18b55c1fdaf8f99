#include "wam/train/layouts.h"

#include <fmt/format.h>

#include <algorithm>

#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/ops/op_list.h"
#include "wam/train/device.h"
#include "wam/train/ranks.h"
#include "wam/train/run_plan.h"

namespace wam::train {
namespace {

// What a rank receives by one run of a program, by axis.
struct Traffic {
  int64_t shard = 0, replica = 0;
  int64_t total() const { return shard + replica; }
  void add(const Program& program, int64_t runs) {
    for (const Step& step : program.steps) {
      if (!find_op(step.op)->has(kCollective)) continue;
      (step.attrs.text("axis") == "replica" ? replica : shard) +=
          runs * static_cast<int64_t>(step.cost.bytes);
    }
  }
};

class Comparison {
 public:
  Comparison(const TrainConfig& config, const Cluster& cluster, bool largest)
      : config_(config), cluster_(cluster), largest_(largest), model_(resolve_model(config)) {
    check();
    encoders_ = encoders_of(config);
  }

  std::vector<Layout> run() const {
    std::vector<Layout> layouts;
    for (const char* name : {"none", "optimizer", "gradients", "full", "hybrid"})
      layouts.push_back(plan(name));
    return layouts;
  }

 private:
  void check() const {
    if (cluster_.ranks >= 1 && cluster_.nodes >= 1 && cluster_.ranks % cluster_.nodes == 0) return;
    throw ConfigError({.where = "wam plan --ranks, --nodes",
                       .what = "the ranks cannot be spread evenly over the nodes",
                       .got = fmt::format("{} ranks on {} nodes", cluster_.ranks, cluster_.nodes),
                       .expected = "a number of ranks that the number of nodes divides",
                       .remedy = "Choose other numbers."});
  }

  EncoderPrograms encoders_of(const TrainConfig& c) const {
    return build_encoders(c, model_, vae_config(c.vae), target_of(encoder_device(c)), encoder_types(c));
  }

  int64_t ranks_of_node() const { return cluster_.ranks / cluster_.nodes; }

  std::string refusal_of(const std::string& name) const {
    if (name == "none") return "";
    if (cluster_.ranks == 1) return "pointless: a group of one rank divides nothing";
    if (name == "hybrid" && cluster_.nodes == 1)
      return "no hybrid mesh: one node, so one group; use full";
    if (name == "hybrid" && ranks_of_node() == 1)
      return "no hybrid mesh: groups of one rank; use full";
    return "";
  }

  Layout plan(const std::string& name) const {
    Layout layout{.name = name, .refusal = refusal_of(name)};
    if (!layout.refusal.empty()) return layout;
    TrainConfig c = config_;
    c.ranks = cluster_.ranks;
    c.sharding.strategy = name;
    c.sharding.shard_size = name == "hybrid" ? ranks_of_node() : 0;
    if (!largest_) {
      deal_batch(c);
      fill(c, layout);
      if (!fits(layout)) {
        layout.refusal = "does not fit: " + format_bytes(layout.memory.total_bytes()) + " a rank";
      }
      return layout;
    }
    return find_largest(c, std::move(layout));
  }

  bool fits(const Layout& layout) const {
    return cluster_.memory_bytes == 0 || layout.memory.total_bytes() <= cluster_.memory_bytes;
  }

  // The config's global batch where it can be dealt, else one micro-batch a rank.
  static void deal_batch(TrainConfig& c) {
    const int64_t at_once = c.micro_batch_size * c.ranks;
    if (c.global_batch_size % at_once != 0) c.global_batch_size = at_once;
  }

  Layout find_largest(TrainConfig c, Layout layout) const {
    Layout best = layout;
    best.refusal = "does not fit";
    for (const bool recompute : {false, true}) {
      c.recompute.policy = recompute ? RecomputePolicy::kFull : RecomputePolicy::kNone;
      for (int64_t batch = 1; batch <= 64; batch *= 2) {
        c.micro_batch_size = batch;
        c.global_batch_size = batch * c.ranks;
        fill(c, layout);
        if (!fits(layout)) {
          if (batch == 1)
            best.refusal = "does not fit: " + format_bytes(layout.memory.total_bytes()) + " a rank";
          break;
        }
        best = layout;
        best.full_recompute = recompute;
      }
      if (best.micro_batch != 0) break;
    }
    if (best.micro_batch != 0) best.refusal.clear();
    return best;
  }

  void fill(const TrainConfig& c, Layout& layout) const {
    const int64_t prompt =
        c.text_encoder.prompt_tokens != 0 ? c.text_encoder.prompt_tokens : model_.text_len;
    const StepPrograms step = build_step(step_options(c, model_, prompt), target_of(c.device));
    layout.sharding = sharding_of(c);
    layout.micro_batch = c.micro_batch_size;
    layout.samples = c.global_batch_size;
    layout.full_recompute = c.recompute.policy == RecomputePolicy::kFull;
    std::vector<const Program*> together = step.all();
    std::optional<EncoderPrograms> divided;
    if (c.sharding.encoders == "sharded") divided = encoders_of(c);
    const EncoderPrograms& encoders = divided ? *divided : encoders_;
    if (encoder_device(c) == c.device)
      together.insert(together.end(), {&encoders.pictures, &encoders.prompt});
    layout.memory = combine(together);
    Traffic traffic;
    double flops = step.optimizer.cost.flops, behind = 0;  // what collectives can hide behind
    for (int64_t i = 0; i < c.accumulate(); ++i) {
      const Program& program = step.micro_batch(i, c.accumulate());
      const int64_t before = traffic.total();
      traffic.add(program, 1);
      flops += program.cost.flops;
      if (traffic.total() > before) behind += program.cost.flops;
    }
    const int64_t in_step = traffic.total();
    traffic.add(step.optimizer, 1);
    layout.compute_seconds = flops / cluster_.flops_per_second;
    // Sums of gradients alone trail a backward half, two thirds of a micro-batch.
    if (!layout.sharding.divides_weights()) behind *= 2.0 / 3;
    const dist::Mesh& mesh = layout.sharding.mesh;
    (mesh.shard_size > ranks_of_node() ? layout.network_bytes : layout.node_bytes) += traffic.shard;
    // Replicas: groups beside each other on a node, or one a node.
    const bool crosses = cluster_.nodes > 1;
    (crosses ? layout.network_bytes : layout.node_bytes) += traffic.replica;
    layout.communication_seconds =
        static_cast<double>(layout.node_bytes) / cluster_.node_bandwidth +
        static_cast<double>(layout.network_bytes) / cluster_.network_bandwidth;
    const double share = traffic.total() == 0
                             ? 0
                             : static_cast<double>(in_step) / static_cast<double>(traffic.total());
    layout.hidden_seconds = std::min(behind / cluster_.flops_per_second, share * layout.communication_seconds);
  }

  const TrainConfig& config_;
  const Cluster& cluster_;
  bool largest_;
  DitConfig model_;
  EncoderPrograms encoders_;
};

int64_t category(const MemoryPlan& memory, const char* name) {
  const auto found = memory.by_category.find(name);
  return found == memory.by_category.end() ? 0 : found->second;
}

}  // namespace

std::vector<Layout> compare_layouts(const TrainConfig& config, const Cluster& cluster,
                                    bool largest) {
  return Comparison(config, cluster, largest).run();
}

std::string describe(const std::vector<Layout>& layouts, const Cluster& cluster) {
  std::string text = fmt::format(
      "{} ranks on {} nodes, a rank receives {:.0f} GB/s inside a node and {:.0f} GB/s between "
      "nodes,\n"
      "and computes {:.3g} FLOP/s. Memory is that of a rank, traffic what a rank receives in a "
      "step.\n"
      "Collectives of forward and backward hide behind compute where there is enough of it.\n\n",
      cluster.ranks, cluster.nodes, cluster.node_bandwidth / 1e9, cluster.network_bandwidth / 1e9,
      cluster.flops_per_second);
  text += fmt::format(
      "{:<10} {:>5} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>11} {:>11} {:>9} {:>9} {:>9} {:>9} "
      "{:>8}\n",
      "strategy", "group", "micro", "weights", "gradients", "optimizer", "activ.", "total",
      "in node", "network", "compute", "talk", "hidden", "step", "scaling");
  for (const Layout& l : layouts) {
    if (!l.refusal.empty() && l.micro_batch == 0) {
      text += fmt::format("{:<10} refused, {}\n", l.name, l.refusal);
      continue;
    }
    const auto bytes = [&](std::initializer_list<const char*> names) {
      int64_t total = 0;
      for (const char* name : names) total += category(l.memory, name);
      return format_bytes(total);
    };
    text += fmt::format(
        "{:<10} {:>5} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>11} {:>11} {:>7.0f}ms {:>7.0f}ms "
        "{:>7.0f}ms {:>7.0f}ms {:>6.1f} %{}\n",
        l.name, l.sharding.mesh.shard_size,
        fmt::format("{}{}", l.micro_batch, l.full_recompute ? " again" : ""), bytes({"weights"}),
        bytes({"gradients"}), bytes({"moments", "master"}), bytes({"activations", "workspace"}),
        format_bytes(l.memory.total_bytes()), format_bytes(l.node_bytes),
        format_bytes(l.network_bytes), 1e3 * l.compute_seconds, 1e3 * l.communication_seconds,
        1e3 * l.hidden_seconds, 1e3 * l.step_seconds(), 100 * l.scaling(),
        l.refusal.empty() ? "" : "  refused, " + l.refusal);
  }
  return text;
}

}  // namespace wam::train
