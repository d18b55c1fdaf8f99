// Private to validate*: the meta folder read leniently, fault by fault.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wam/base/error.h"
#include "wam/data/lerobot_info.h"
#include "wam/data/lerobot_layout.h"
#include "wam/data/stats_file.h"
#include "wam/data/validate.h"

namespace wam::data {

// What the rest of the validation works on; parts that cannot be read are empty.
struct MetaView {
  std::filesystem::path root;
  std::optional<LerobotInfo> info;
  std::vector<Episode> episodes;  // ascending, distinct, not discarded
  std::vector<Episode> discarded;
  std::unique_ptr<EpisodeLayout> layout;  // null if there is no info
  std::map<int64_t, std::string> tasks;
  Modality modality;
  StatsByColumn stats;
  std::map<int64_t, StatsByColumn> episode_stats;  // of episodes_stats.jsonl

  // Relative to the dataset's folder, for messages.
  const char* episodes_file() const { return is_v3() ? "meta/episodes" : "meta/episodes.jsonl"; }
  const char* tasks_file() const { return is_v3() ? "meta/tasks.parquet" : "meta/tasks.jsonl"; }
  bool is_v3() const { return info.has_value() && info->is_v3(); }
};

// Where faults go; paths are made relative to the dataset's folder.
class FaultList {
 public:
  explicit FaultList(const std::filesystem::path& root) : root_(root) {}
  void add(Fault fault);
  void add(const std::string& code, Severity severity, const DataError& error,
           const std::filesystem::path& file, int64_t episode = -1, int64_t row = -1);
  std::vector<Fault> take() { return std::move(faults_); }
  std::string relative(const std::filesystem::path& file) const;

 private:
  std::filesystem::path root_;
  std::vector<Fault> faults_;
};

MetaView validate_meta(const std::filesystem::path& root, FaultList& faults);
// Fills in episodes, tasks and layout of a v3.0 dataset.
void validate_meta_v3(MetaView& meta, FaultList& faults);
// Columns that hold the robot's states and actions.
std::set<std::string> state_and_action_columns(const Modality& modality);

}  // namespace wam::data
