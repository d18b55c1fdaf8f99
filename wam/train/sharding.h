// How a run's states are divided over its ranks.
//
// strategy    weights     gradients   optimizer state  communication of a step
// none        whole       whole       whole            gradients summed
// optimizer   whole       whole       part             gradients summed into parts, weights
// gathered gradients   whole       part        part             the same, gradients in every
// micro-batch full        part        part        part             weights gathered a block at a
// time, twice a
//                                                      micro-batch; gradients as before
// Parts are divided over the mesh's shard groups; with several replicas of such a group the parts'
// gradients are summed over them once a step (with full: hybrid).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wam/dist/mesh.h"
#include "wam/models/params.h"
#include "wam/passes/shard.h"

namespace wam::train {

enum class Strategy : uint8_t { kNone, kOptimizer, kGradients, kFull };
std::string_view name(Strategy strategy);

struct Sharding {
  Strategy strategy = Strategy::kNone;
  dist::Mesh mesh;                    // kNone: shard_size 1
  bool reshard_after_forward = true;  // kFull: false keeps gathered weights for the backward half
  int64_t prefetch = 1;               // kFull: buffers gathered ahead
  DType reduce_dtype = DType::kF32;   // of gradients on their way: kF32 or kBF16
  bool overlap = true;   // kNone, kOptimizer: sums behind the last micro-batch's backward half
  bool encoders = false;   // weights of frozen encoders are divided, too
  bool keep_lone = false;  // collectives of a world of one stay in: to see what they cost

  bool divides_optimizer() const { return strategy != Strategy::kNone; }
  bool divides_gradients() const { return strategy >= Strategy::kGradients; }
  bool divides_weights() const { return strategy == Strategy::kFull; }
  // Gradients that every rank keeps whole are summed block by block as the last micro-batch makes
  // them, not all together after it.
  bool sums_early() const {
    return overlap && !divides_gradients() && (mesh.world() > 1 || keep_lone);
  }
  // The group over which that is done; what is left to replicas of it comes after.
  dist::Axis early_axis() const {
    return divides_optimizer() ? dist::Axis::kShard : dist::Axis::kReplica;
  }
  // The ranks among which frozen encoders are divided: those of the states, or all where states are
  // not divided.
  dist::Axis encoder_axis() const {
    return mesh.shard_size > 1 ? dist::Axis::kShard : dist::Axis::kWorld;
  }
  bool divides_encoders() const { return encoders && mesh.size(encoder_axis()) > 1; }
  RankGroup group(dist::Axis axis) const { return {dist::name(axis), mesh.size(axis)}; }
  // Elements a rank keeps of a state that is divided, and where they begin in the flat buffer.
  int64_t part_elements(const FlatBuffer& buffer) const {
    return shard_elements(buffer.num_elements, mesh.shard_size);
  }
  int64_t part_begin(const FlatBuffer& buffer) const {
    return mesh.shard() * part_elements(buffer);
  }
  // A whole buffer, long enough for equal parts.
  int64_t padded_elements(const FlatBuffer& buffer) const {
    return strategy == Strategy::kNone ? buffer.num_elements
                                       : part_elements(buffer) * mesh.shard_size;
  }
};

// What the pass has to do to a graph of frozen encoders with these parameters.
ShardOptions encoder_shard_options(const Sharding& sharding, std::span<const ParamSet* const> sets);
// What the pass has to do to a step's graph, of a micro-batch that accumulates or is the step's last;
// nothing if states are whole in it.
std::optional<ShardOptions> shard_options(const Sharding& sharding, const ParamSet& params,
                                          bool accumulate, bool last);

}  // namespace wam::train
