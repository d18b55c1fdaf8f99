// Faults that only LeRobot v3.0 can have, and those of files that episodes share.
#include "wam/data/validate_cases.h"
#include "wam/data/video_testing.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Columns = std::vector<ParquetColumnData>;

constexpr Severity kWarning = Severity::kWarning;

const char* const kFrom = "videos/observation.images.top/from_timestamp";
const char* const kTo = "videos/observation.images.top/to_timestamp";

fs::path table(const Spoiler& s) { return s.root / "data/chunk-000/file-000.parquet"; }
fs::path video(const Spoiler& s) {
  return s.root / "videos" / s.options.cameras[0] / "chunk-000/file-000.mp4";
}

// Edits meta/episodes.
std::function<void(const Spoiler&)> meta(const std::function<void(Columns&)>& edit) {
  return [=](const Spoiler& s) { edit_parquet(test_v3_episodes_path(s.root), edit); };
}

std::function<void(const Spoiler&)> set(const char* column, size_t row, int64_t value) {
  return meta([=](Columns& c) { find_numbers(c, column).as<int64_t>()[row] = value; });
}

std::function<void(const Spoiler&)> move(const char* column, size_t row, double by) {
  return meta([=](Columns& c) { find_numbers(c, column).as<double>()[row] += by; });
}

}  // namespace

// Three episodes of 24, 20 and 22 rows; the first two share files.
std::vector<FaultCase> v3_fault_cases() {
  return {
      {"v3: no list of episodes",
       {"meta-missing", "file-unused", "camera-absent", "count-mismatch"},
       [](const Spoiler& s) { fs::remove_all(s.root / "meta/episodes"); }},
      {"v3: list without footer",
       {"table-footer", "dataset-empty", "file-unused", "camera-absent", "count-mismatch"},
       [](const Spoiler& s) { s.cut(test_v3_episodes_path(s.root), 0.6); }},
      {"v3: length of an episode",
       {"episode-line-invalid", "episode-gap", "count-mismatch", "table-rows", "video-offset",
        "video-frames", "stats-mismatch", "episode-index"},
       set("length", 0, 0),
       0,
       0},
      {"v3: episode twice",
       {"episode-duplicate", "count-mismatch", "file-unused", "stats-mismatch", "video-end"},
       set("episode_index", 2, 1),
       1},
      {"v3: no tasks",
       {"meta-missing"},
       [](const Spoiler& s) { fs::remove(s.root / "meta/tasks.parquet"); },
       -1,
       -1,
       kWarning},
      {"v3: tasks damaged",
       {"table-empty"},
       [](const Spoiler& s) { write_text(s.root / "meta/tasks.parquet", ""); }},
      {"v3: stale place of a row",
       {"meta-place"},
       set("meta/episodes/file_index", 1, 4),
       1,
       -1,
       kWarning},
      {"v3: scrambled offsets of rows", {"table-offset"}, set("dataset_to_index", 1, 40), 1},
      {"v3: scrambled offsets of frames", {"video-offset", "video-end"}, move(kFrom, 1, 0.3), 1},
      {"v3: drifting from_timestamp",
       {"video-drift", "video-end"},
       move(kFrom, 1, 0.03),
       1,
       -1,
       kWarning},
      {"v3: to_timestamp", {"video-end"}, move(kTo, 2, 0.2), 2, -1, kWarning},
      {"v3: table without footer",
       {"table-footer", "stats-mismatch"},
       [](const Spoiler& s) { s.cut(table(s), 0.7); },
       0},
      {"v3: table with fewer rows",
       {"table-rows", "stats-mismatch"},
       [](const Spoiler& s) {
         fs::copy_file(s.root / "data/chunk-000/file-001.parquet", table(s),
                       fs::copy_options::overwrite_existing);
         edit_parquet(table(s), [](Columns& c) {
           for (const char* name : {"episode_index", "task_index"}) fill(c, name, 0, 22, 0);
         });
       },
       0},
      {"v3: stale file indices",
       {"episode-index", "table-rows"},
       [](const Spoiler& s) {
         edit_parquet(test_v3_episodes_path(s.root), [](Columns& c) {
           std::swap(find_numbers(c, "data/file_index").as<int64_t>()[0],
                     find_numbers(c, "data/file_index").as<int64_t>()[2]);
         });
       },
       0,
       0},
      {"v3: task missing",
       {"task-missing"},
       [](const Spoiler& s) {
         edit_parquet(table(s), [](Columns& c) { fill(c, "task_index", 30, 31, 77); });
       },
       1,
       6},
      {"v3: video with fewer frames",
       {"video-frames"},
       [](const Spoiler& s) { write_test_video(video(s), 64, 48, 43, 10, {}); },
       1},
      {"v3: video with more frames",
       {"video-frames"},
       [](const Spoiler& s) { write_test_video(video(s), 64, 48, 45, 10, {}); },
       0,
       -1,
       kWarning},
      {"v3: video missing", {"video-missing"}, [](const Spoiler& s) { fs::remove(video(s)); }, 0},
  };
}

}  // namespace wam::data
