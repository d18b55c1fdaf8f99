// Datasets of LeRobot v3.0: files that hold the rows, or the frames, of many episodes. Row r of an
// episode is frame first + r of its video, `first` being the sum of the lengths of the episodes
// that come before it in that file; from_timestamp orders them and checks the sum, nothing more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "wam/base/error.h"
#include "wam/data/lerobot_dataset.h"

namespace wam::data {

// Where the meta says that an episode's frames of one camera lie.
struct V3Video {
  int64_t chunk_index = -1, file_index = -1;  // -1: the meta has no such columns
  double from_timestamp = 0, to_timestamp = 0;
};

// One row of meta/episodes as it is written there.
struct V3Row {
  Episode episode;
  int64_t data_chunk = 0, data_file = 0;
  int64_t dataset_from = -1, dataset_to = -1;  // -1: no such column
  int64_t meta_chunk = -1, meta_file = -1;     // where the row says it lies itself; -1: no column
  std::vector<V3Video> videos;                 // of v3_cameras(), in that order
};

// Video features of info.json, in its order.
std::vector<std::string> v3_cameras(const LerobotInfo& info);
// meta/episodes/chunk-*/file-*.parquet, by name. Throws DataError when there are none.
std::vector<std::filesystem::path> v3_episode_files(const std::filesystem::path& root);
// Calls visit(row, "file, row 7") for every row of one of them. Checks types and bounds of numbers,
// nothing else. Statistics are not read.
void for_each_v3_row(const std::filesystem::path& file, const LerobotInfo& info,
                     const std::function<void(V3Row&, int64_t row)>& visit);
// meta/tasks.parquet; empty when it is absent. Throws DataError: unreadable, an index given twice.
std::map<int64_t, std::string> read_v3_tasks(const std::filesystem::path& root);

// Something that does not add up between rows.
struct V3Fault {
  std::string code;      // "video-offset"
  int64_t episode = -1;  // its index
  ErrorInfo info;
};

// Collects rows, in any order, and makes the meta of them.
class V3MetaBuilder {
 public:
  V3MetaBuilder(const std::filesystem::path& root, const LerobotInfo& info);
  ~V3MetaBuilder();
  void add(V3Row row);
  // Calls on_fault for every fault: "episode-duplicate" (the second row is dropped), "table-offset"
  // (dataset_from_index or dataset_to_index is not what the lengths add up to) and "video-offset"
  // (from_timestamp is half a frame or more from where the lengths put the episode). Tasks are left
  // to the caller.
  LerobotMeta finish(const std::function<void(const V3Fault&)>& on_fault);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All of it. Throws the first fault of an episode that is not discarded, as CodedError.
LerobotMeta read_lerobot_v3(const std::filesystem::path& root, const LerobotInfo& info);

}  // namespace wam::data
