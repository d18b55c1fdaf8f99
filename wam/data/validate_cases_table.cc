#include <algorithm>
#include <cmath>

#include "wam/base/files.h"
#include "wam/data/validate_cases.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Columns = std::vector<ParquetColumnData>;

constexpr Severity kNote = Severity::kNote, kWarning = Severity::kWarning;

}  // namespace

std::vector<FaultCase> table_fault_cases() {
  const auto with_numbers = [](const char* column, int64_t from, int64_t to, double value) {
    return [=](const Spoiler& s) {
      s.table(1, [=](Columns& c) { fill(c, column, from, to, value); });
    };
  };
  return {
      {"table missing",
       {"table-missing"},
       [](const Spoiler& s) { fs::remove(test_table_path(s.root, 1)); },
       1},
      {"table cut",
       {"table-footer"},
       [](const Spoiler& s) { s.cut(test_table_path(s.root, 1), 0.5); },
       1},
      {"table empty",
       {"table-empty"},
       [](const Spoiler& s) { write_text(test_table_path(s.root, 1), ""); },
       1},
      {"no table",
       {"table-unreadable"},
       [](const Spoiler& s) { write_text(test_table_path(s.root, 1), std::string(900, 'x')); },
       1},
      {"rows",
       {"table-rows", "count-mismatch"},
       [](const Spoiler& s) {
         std::string text = read_text_file(s.root / "meta/episodes.jsonl");
         text.replace(text.find("\"length\":20"), 11, "\"length\":21");
         write_text(s.root / "meta/episodes.jsonl", text);
       },
       1},
      {"column missing",
       {"column-missing"},
       [](const Spoiler& s) {
         s.table(1,
                 [](Columns& c) { std::erase_if(c, [](auto& x) { return x.name == "action"; }); });
       },
       1},
      {"column type",
       {"column-type"},
       [](const Spoiler& s) {
         s.table(1, [](Columns& c) { c[1].values = ParquetTextList(20, {"a"}); });
       },
       1},
      {"column dtype",
       {"column-dtype"},
       [](const Spoiler& s) {
         s.table(1, [](Columns& c) { c[1].values = find_numbers(c, "action").to(DType::kF64); });
       },
       1,
       -1,
       kWarning},
      {"column width",
       {"column-width"},
       [](const Spoiler& s) {
         s.table(1, [](Columns& c) { c[1].values = HostTensor::zeros(DType::kF32, {20, 5}); });
       },
       1},
      {"column damaged",
       {"column-unreadable"},
       [](const Spoiler& s) {
         // The first pages lie right behind the magic number.
         std::string bytes = read_text_file(test_table_path(s.root, 1));
         for (size_t i = 40; i < 120; ++i) bytes[i] = static_cast<char>(0xA5);
         write_text(test_table_path(s.root, 1), bytes);
       },
       1},
      {"NaN in action",
       {"value-nonfinite"},
       with_numbers("action", 3 * 7 + 1, 3 * 7 + 2, NAN),
       1,
       7},
      {"infinity in timestamp",
       {"value-nonfinite"},
       with_numbers("timestamp", 4, 5, INFINITY),
       1,
       4,
       kWarning},
      {"frame_index", {"frame-index"}, with_numbers("frame_index", 5, 6, 9), 1, 5},
      {"index", {"index-gap"}, with_numbers("index", 6, 7, 0), 1, 6, kWarning},
      {"episode_index", {"episode-index"}, with_numbers("episode_index", 3, 4, 2), 1, 3},
      {"task", {"task-missing"}, with_numbers("task_index", 8, 9, 77), 1, 8},
      {"time backwards",
       {"timestamp-order", "timestamp-jitter"},
       with_numbers("timestamp", 5, 6, 0.2),
       1,
       5,
       kWarning},
      {"jitter", {"timestamp-jitter"}, with_numbers("timestamp", 5, 6, 0.53), 1, 5, kWarning},
      {"late start",
       {"timestamp-offset"},
       [](const Spoiler& s) {
         s.table(1, [](Columns& c) {
           for (float& value : find_numbers(c, "timestamp").as<float>()) value += 0.1F;
         });
       },
       1,
       0,
       kNote},
      {"constant dim",
       {"dim-constant", "stats-mismatch"},
       [](const Spoiler& s) {
         for (int64_t episode = 0; episode < 3; ++episode) {
           s.table(episode, [](Columns& c) {
             HostTensor& action = find_numbers(c, "action");
             for (int64_t i = 0; i < action.num_elements(); i += 3) action.as<float>()[i] = 0.5F;
           });
         }
         write_text(s.root / "meta/stats.json", "{}");
       },
       -1,
       -1,
       kNote},
      {"clipped dim",
       {"dim-clipped", "stats-mismatch"},
       [](const Spoiler& s) {
         for (int64_t episode = 0; episode < 3; ++episode) {
           s.table(episode, [](Columns& c) {
             for (float& value : find_numbers(c, "action").as<float>()) {
               value = std::min(value, 0.5F);
             }
           });
         }
         write_text(s.root / "meta/stats.json", "{}");
       },
       -1,
       -1,
       kWarning},
      {"outlier",
       {"value-outlier", "stats-mismatch"},
       [](const Spoiler& s) {
         s.table(1, [](Columns& c) { fill(c, "observation.state", 4 * 6 + 2, 4 * 6 + 3, 30); });
         edit_json(s.root / "meta/stats.json",
                   [](json& m) { m["observation.state"].erase("mean"); });
       },
       1,
       6,
       kWarning},
  };
}

}  // namespace wam::data
