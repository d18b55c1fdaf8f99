// Which values share memory: views with what they look into, updated states with their new value,
// outputs with inputs they may overwrite. Everything else of lowering builds on this.
#pragma once

#include <cstdint>
#include <vector>

#include "wam/graph/graph.h"

namespace wam {

// A piece of memory, one for each group of values that share it.
struct Storage {
  ValueId fixed;         // the input, state or constant it lies in; invalid: arena
  int64_t bytes = 0;
  int32_t first = -1;    // positions in the execution order
  int32_t last = -1;
};

struct StorageMap {
  std::vector<int32_t> storage_of;   // by value index; -1 for values nobody uses
  std::vector<int64_t> offset_of;    // bytes from the storage's start
  std::vector<Storage> storages;
};

// May append copy nodes to the graph's order for updates that cannot be done in place.
StorageMap assign_storage(Graph& graph);

}  // namespace wam
