// Where a collection is written: a folder beside its final place, locked while it is being filled,
// renamed when it is whole; and the record by which a later call knows it again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "wam/base/file_descriptor.h"
#include "wam/sim/collect.h"

namespace wam::sim {

// Reads path/meta/wam_sim.json. Nothing when `path` is absent or an empty folder; the report when
// it holds the collection that `options` describe, with every file of its size; DataError
// otherwise: not a folder, other data, another collection, files missing.
std::optional<CollectReport> find_collection(const CollectOptions& options);

// Writes root/meta/wam_sim.json: the options, the report, and the size of each of `files`
// (relative to root).
void write_collection_record(const std::filesystem::path& root, const CollectOptions& options,
                             const CollectReport& report,
                             const std::vector<std::filesystem::path>& files);

// The folder being filled. The destructor removes it unless publish() was reached.
class PartialFolder {
 public:
  // Makes `final_path` + ".partial", removing what a killed collection left there. Throws DataError
  // when another process holds it or when it is not a collection's.
  explicit PartialFolder(std::filesystem::path final_path);
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Renames to the final path; an empty folder there is replaced.
  void publish();

 private:
  std::filesystem::path final_path_, path_;
  FileDescriptor lock_;
  bool published_ = false;
};

}  // namespace wam::sim
