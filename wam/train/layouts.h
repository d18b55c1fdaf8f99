// What each way of sharing a run's states over ranks costs: bytes of a rank, bytes it receives a
// step, and the time of a step at stated speeds. Needs no device.
#pragma once

#include <string>
#include <vector>

#include "wam/plan/memory_plan.h"
#include "wam/train/config.h"
#include "wam/train/sharding.h"

namespace wam::train {

struct Cluster {
  int64_t ranks = 1, nodes = 1;
  int64_t memory_bytes = 0;         // that a rank may take; 0: no limit
  double node_bandwidth = 400e9;    // bytes a second that a rank receives inside a node
  double network_bandwidth = 50e9;  // and from other nodes
  double flops_per_second =
      5.6e14;  // that the step sustains; what one H200 does (docs/performance.md)
};

struct Layout {
  std::string name;     // as in sharding.strategy
  std::string refusal;  // why it is none, or pointless; the rest is then empty
  Sharding sharding;
  int64_t micro_batch = 0;
  bool full_recompute = false;
  MemoryPlan memory;
  int64_t node_bytes = 0, network_bytes = 0;  // received by a rank in one optimizer step
  // Collectives of forward and backward may run beside compute, those of the optimizer do not.
  double compute_seconds = 0, communication_seconds = 0, hidden_seconds = 0;
  double step_seconds() const { return compute_seconds + communication_seconds - hidden_seconds; }
  // One rank would need ranks times as long for the same samples: 1 if nothing is lost.
  double scaling() const { return compute_seconds / step_seconds(); }
  int64_t samples = 0;  // of an optimizer step
};

// Every strategy for the config's model and micro-batch. With `largest` the largest micro-batch is
// taken that fits the cluster's memory (recomputing everything if nothing else fits), and the
// global batch is one micro-batch a rank. Throws ConfigError for a cluster that is none.
std::vector<Layout> compare_layouts(const TrainConfig& config, const Cluster& cluster,
                                    bool largest = false);
std::string describe(const std::vector<Layout>& layouts, const Cluster& cluster);

}  // namespace wam::train
