#include "wam/data/table_cache.h"

namespace wam::data {

int64_t table_bytes(const EpisodeTable& table) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : table.numeric) bytes += tensor.size_bytes();
  for (const auto& [name, texts] : table.text) {
    for (const std::string& text : texts) {
      bytes += static_cast<int64_t>(sizeof(std::string) + text.size());
    }
  }
  return bytes;
}

std::shared_ptr<const CachedTable> TableCache::get(const Key& key, const Read& read) {
  {
    const std::lock_guard lock(mutex_);
    const auto place = places_.find(key);
    if (place != places_.end()) {
      entries_.splice(entries_.begin(), entries_, place->second);
      return place->second->table;
    }
  }
  std::shared_ptr<const CachedTable> table = read();
  insert(key, table);
  return table;
}

void TableCache::insert(const Key& key, const std::shared_ptr<const CachedTable>& table) {
  const std::lock_guard lock(mutex_);
  if (places_.contains(key)) return;
  entries_.push_front({key, table, table_bytes(table->table)});
  places_[key] = entries_.begin();
  bytes_ += entries_.front().bytes;
  while (bytes_ > max_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

int64_t TableCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace wam::data
