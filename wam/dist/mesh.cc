#include "wam/dist/mesh.h"

#include <numeric>

#include "wam/base/check.h"
#include "wam/base/error.h"

namespace wam::dist {

const char* name(Axis axis) {
  switch (axis) {
    case Axis::kWorld:
      return "world";
    case Axis::kShard:
      return "shard";
    case Axis::kReplica:
      return "replica";
  }
  return "";
}

Axis parse_axis(const std::string& text) {
  for (const Axis axis : {Axis::kWorld, Axis::kShard, Axis::kReplica}) {
    if (text == name(axis)) return axis;
  }
  throw ConfigError({.where = "axis",
                     .what = "no axis of the mesh",
                     .got = "'" + text + "'",
                     .expected = "world, shard or replica",
                     .remedy = "Use one of these."});
}

int Mesh::size(Axis axis) const {
  if (axis == Axis::kShard) return shard_size;
  return axis == Axis::kReplica ? replicas : world();
}

std::vector<int> Mesh::members(Axis axis) const {
  std::vector<int> ranks(static_cast<size_t>(size(axis)));
  if (axis == Axis::kReplica) {
    for (int i = 0; i < replicas; ++i) ranks[static_cast<size_t>(i)] = i * shard_size + shard();
  } else {
    std::iota(ranks.begin(), ranks.end(), axis == Axis::kShard ? replica() * shard_size : 0);
  }
  return ranks;
}

int Mesh::coordinate(Axis axis) const {
  if (axis == Axis::kShard) return shard();
  return axis == Axis::kReplica ? replica() : rank;
}

Mesh make_mesh(int world, int rank, int shard_size) {
  WAM_CHECK(world >= 1 && rank >= 0 && rank < world) << rank << " of " << world;
  if (shard_size < 1 || world % shard_size != 0) {
    throw ConfigError(
        {.where = "sharding.shard_size",
         .what = "the ranks cannot be divided into groups of this size",
         .got = std::to_string(shard_size) + " with " + std::to_string(world) + " ranks",
         .expected = "a divisor of the number of ranks",
         .remedy = "Choose another shard_size, or start another number of ranks."});
  }
  return {.shard_size = shard_size, .replicas = world / shard_size, .rank = rank};
}

}  // namespace wam::dist
