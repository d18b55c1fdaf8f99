// Ranks as a grid: rank = replica * shard_size + shard. States are divided within a shard group and
// repeated across replicas. Ranks of one shard group are neighbours, so that with one process per
// device and shard_size = devices of a node the frequent traffic stays inside the node.
#pragma once

#include <string>
#include <vector>

namespace wam::dist {

enum class Axis { kWorld, kShard, kReplica };
const char* name(Axis axis);               // "world", "shard", "replica"
Axis parse_axis(const std::string& text);  // throws ConfigError

struct Mesh {
  int shard_size = 1, replicas = 1;
  int rank = 0;

  int world() const { return shard_size * replicas; }
  int shard() const { return rank % shard_size; }
  int replica() const { return rank / shard_size; }
  int size(Axis axis) const;
  // World ranks of this rank's group, ascending; its own place in it is coordinate(axis).
  std::vector<int> members(Axis axis) const;
  int coordinate(Axis axis) const;
};

// Throws ConfigError if `shard_size` does not divide `world`.
Mesh make_mesh(int world, int rank, int shard_size);

}  // namespace wam::dist
