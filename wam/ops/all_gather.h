// y = the parts of all ranks of a group, one behind the other: [n] -> [ranks * n]. Any dtype.
// With one rank it is a copy and needs no communicator.
#pragma once

#include <string>

#include "wam/graph/builder.h"

namespace wam {

// Which ranks take part: an axis of the mesh ("world", "shard", "replica") and its size.
struct RankGroup {
  std::string axis = "shard";
  int64_t ranks = 1;
};

ValueId all_gather(Builder& b, ValueId x, const RankGroup& group);

}  // namespace wam
