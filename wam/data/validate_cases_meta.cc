#include "wam/data/validate_cases.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr Severity kNote = Severity::kNote, kWarning = Severity::kWarning;

}  // namespace

std::vector<FaultCase> meta_fault_cases() {
  return {
      {"no folder", {"dataset-missing"}, [](const Spoiler& s) { fs::remove_all(s.root); }},
      {"no info",
       {"dataset-missing"},
       [](const Spoiler& s) { fs::remove(s.root / "meta/info.json"); }},
      {"info not JSON", {"info-invalid"}, [](const Spoiler& s) { s.append("info.json", "x"); }},
      {"fps 0", {"info-invalid"}, [](const Spoiler& s) { s.info([](json& i) { i["fps"] = 0; }); }},
      {"version",
       {"version-unknown"},
       [](const Spoiler& s) { s.info([](json& i) { i["codebase_version"] = "v1.6"; }); }},
      {"template outside",
       {"path-outside"},
       [](const Spoiler& s) { s.info([](json& i) { i["data_path"] = "../{episode_index}"; }); }},
      {"no episodes file",
       {"meta-missing", "file-unused", "camera-absent", "count-mismatch"},
       [](const Spoiler& s) { fs::remove(s.root / "meta/episodes.jsonl"); }},
      {"no episodes",
       {"dataset-empty", "file-unused", "camera-absent", "count-mismatch"},
       [](const Spoiler& s) { write_text(s.root / "meta/episodes.jsonl", "\n"); }},
      {"episode line",
       {"episode-line-invalid"},
       [](const Spoiler& s) { s.append("episodes.jsonl", "{\"episode_index\": 3}\n"); }},
      {"episode twice",
       {"episode-duplicate"},
       [](const Spoiler& s) {
         s.append("episodes.jsonl", "{\"episode_index\": 1, \"length\": 9}\n");
       },
       1},
      {"episode gap",
       {"episode-gap", "count-mismatch", "file-unused"},
       [](const Spoiler& s) {
         write_text(s.root / "meta/episodes.jsonl",
                    "{\"episode_index\":0,\"tasks\":[\"push\"],\"length\":24}\n"
                    "{\"episode_index\":2,\"tasks\":[\"push\"],\"length\":22}\n");
         fs::remove(s.root / "meta/stats.json");
         write_text(s.root / "meta/stats.json", "{}");
       },
       -1,
       -1,
       kWarning},
      {"discarded",
       {"episode-discarded"},
       [](const Spoiler& s) {
         s.info([](json& i) { i["discarded_episode_indices"] = {1}; });
         write_text(s.root / "meta/stats.json", "{}");
       },
       -1,
       -1,
       kNote},
      {"no tasks file",
       {"meta-missing"},
       [](const Spoiler& s) { fs::remove(s.root / "meta/tasks.jsonl"); },
       -1,
       -1,
       kWarning},
      {"task line",
       {"task-line-invalid"},
       [](const Spoiler& s) { s.append("tasks.jsonl", "[]\n"); }},
      {"task twice",
       {"task-duplicate"},
       [](const Spoiler& s) { s.append("tasks.jsonl", "{\"task_index\":1,\"task\":\"x\"}\n"); }},
      {"task unlisted",
       {"task-unlisted", "task-missing", "count-mismatch"},
       [](const Spoiler& s) {
         write_text(s.root / "meta/tasks.jsonl", "{\"task_index\":0,\"task\":\"push\"}\n");
       },
       1,
       -1,
       kWarning},
      {"totals",
       {"count-mismatch"},
       [](const Spoiler& s) { s.info([](json& i) { i["total_frames"] = 5; }); },
       -1,
       -1,
       kWarning},
      {"modality slice",
       {"modality-invalid"},
       [](const Spoiler& s) {
         edit_json(s.root / "meta/modality.json", [](json& m) { m["action"]["arm"]["end"] = 9; });
       }},
      {"modality column",
       {"modality-column"},
       [](const Spoiler& s) {
         edit_json(s.root / "meta/modality.json",
                   [](json& m) { m["state"]["arm"]["original_key"] = "none"; });
       },
       -1,
       -1,
       kWarning},
      {"stats not numbers",
       {"stats-invalid"},
       [](const Spoiler& s) {
         edit_json(s.root / "meta/stats.json", [](json& m) { m["action"]["mean"] = "x"; });
       }},
      {"stats width",
       {"stats-width"},
       [](const Spoiler& s) {
         edit_json(s.root / "meta/stats.json", [](json& m) { m["action"]["q01"] = {1, 2}; });
       }},
      {"no stats",
       {"stats-missing"},
       [](const Spoiler& s) { fs::remove(s.root / "meta/stats.json"); },
       -1,
       -1,
       kNote},
      {"other data's stats",
       {"stats-mismatch"},
       [](const Spoiler& s) {
         edit_json(s.root / "meta/stats.json", [](json& m) { m["action"]["mean"] = {0, 3, 0}; });
       },
       -1,
       -1,
       kWarning},
      {"other episode's stats",
       {"stats-mismatch"},
       [](const Spoiler& s) { s.table(1, [](auto& c) { fill(c, "action", 0, 1, 1.5); }); },
       1,
       -1,
       kWarning},
      {"default column",
       {"column-default"},
       [](const Spoiler& s) { s.info([](json& i) { i["features"].erase("frame_index"); }); },
       -1,
       -1,
       kNote},
      {"unused file",
       {"file-unused"},
       [](const Spoiler& s) {
         fs::copy_file(test_table_path(s.root, 0), test_table_path(s.root, 7));
       },
       -1,
       -1,
       kNote},
  };
}

}  // namespace wam::data
