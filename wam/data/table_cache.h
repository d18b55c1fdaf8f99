// Episodes' tables shared by the loader's threads, within a limit of bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "wam/data/dataset.h"

namespace wam::data {

struct CachedTable {
  EpisodeTable table;
  std::shared_ptr<const std::vector<int64_t>> labels;  // language ids, one per row
};

// Least recently used first out. Thread-safe; a table is read outside the lock, so that two threads
// may read the same one at the same time, which costs time but changes nothing.
class TableCache {
 public:
  using Key = std::pair<int64_t, int64_t>;  // dataset, position of the episode
  using Read = std::function<std::shared_ptr<const CachedTable>()>;

  explicit TableCache(int64_t max_bytes) : max_bytes_(max_bytes) {}
  std::shared_ptr<const CachedTable> get(const Key& key, const Read& read);
  int64_t bytes() const;

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const CachedTable> table;
    int64_t bytes = 0;
  };
  void insert(const Key& key, const std::shared_ptr<const CachedTable>& table);

  int64_t max_bytes_, bytes_ = 0;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // newest first
  std::map<Key, std::list<Entry>::iterator> places_;
};

// Memory of a table's columns.
int64_t table_bytes(const EpisodeTable& table);

}  // namespace wam::data
