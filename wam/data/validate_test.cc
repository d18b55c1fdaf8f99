// Every fault has a dataset made for it; real datasets give exactly the lists kept here.
#include "wam/data/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <set>

#include "wam/base/files.h"
#include "wam/data/image_codec.h"
#include "wam/data/lerobot_testing.h"
#include "wam/data/video_testing.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Columns = std::vector<ParquetColumnData>;

// A dataset in a temporary folder, and ways to spoil it.
struct Spoiler {
  fs::path root;
  TestDatasetOptions options;

  void info(const std::function<void(json&)>& edit) { edit_json(root / "meta/info.json", edit); }
  void table(int64_t episode, const std::function<void(Columns&)>& edit) {
    edit_table(root, options, episode, edit);
  }
  fs::path video(int64_t episode) { return test_video_path(root, episode, options.cameras[0]); }
  void append(const char* meta_file, const std::string& text) {
    std::ofstream(root / "meta" / meta_file, std::ios::app) << text;
  }
  // Overwrites bytes in the middle of a file.
  void scribble(const fs::path& path, double place, size_t count) {
    std::string bytes = read_text_file(path);
    const auto at = static_cast<size_t>(place * static_cast<double>(bytes.size()));
    for (size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<char>(17 * i + 3);
    write_text(path, bytes);
  }
  void cut(const fs::path& path, double share) {
    const std::string bytes = read_text_file(path);
    write_text(path, bytes.substr(0, static_cast<size_t>(share * double(bytes.size()))));
  }
};

void fill(Columns& columns, const std::string& name, int64_t from, int64_t to, double value) {
  HostTensor& numbers = find_numbers(columns, name);
  for (int64_t i = from; i < to; ++i) {
    if (numbers.dtype() == DType::kI64) {
      numbers.as<int64_t>()[static_cast<size_t>(i)] = static_cast<int64_t>(value);
    } else {
      numbers.as<float>()[static_cast<size_t>(i)] = static_cast<float>(value);
    }
  }
}

void write_plain_video(const fs::path& path, int num_frames, bool is_black) {
  VideoWriter writer(path, 64, 48, 10);
  const std::vector<uint8_t> picture(64 * 48 * 3, is_black ? 0 : 90);
  for (int i = 0; i < num_frames; ++i) {
    writer.write(i % 13 == 0 && !is_black ? test_picture(64, 48, i) : picture);
  }
  writer.finish();
}

struct Case {
  const char* name;
  // Codes that must be reported, and no others; the first is what the case is about.
  std::vector<std::string> codes;
  std::function<void(Spoiler&)> spoil;
  int64_t episode = -1, row = -1;  // of the first fault of the first code
  Severity severity = Severity::kError;
};

const Severity kNote = Severity::kNote, kWarning = Severity::kWarning, kError = Severity::kError;

std::vector<Case> meta_cases() {
  return {
      {"no folder", {"dataset-missing"}, [](Spoiler& s) { fs::remove_all(s.root); }},
      {"no info", {"dataset-missing"}, [](Spoiler& s) { fs::remove(s.root / "meta/info.json"); }},
      {"info not JSON", {"info-invalid"}, [](Spoiler& s) { s.append("info.json", "x"); }},
      {"fps 0", {"info-invalid"}, [](Spoiler& s) { s.info([](json& i) { i["fps"] = 0; }); }},
      {"version",
       {"version-unknown"},
       [](Spoiler& s) { s.info([](json& i) { i["codebase_version"] = "v1.6"; }); }},
      {"template outside",
       {"path-outside"},
       [](Spoiler& s) { s.info([](json& i) { i["data_path"] = "../{episode_index}"; }); }},
      {"no episodes file",
       {"meta-missing", "file-unused", "camera-absent", "count-mismatch"},
       [](Spoiler& s) { fs::remove(s.root / "meta/episodes.jsonl"); }},
      {"no episodes",
       {"dataset-empty", "file-unused", "camera-absent", "count-mismatch"},
       [](Spoiler& s) { write_text(s.root / "meta/episodes.jsonl", "\n"); }},
      {"episode line",
       {"episode-line-invalid"},
       [](Spoiler& s) { s.append("episodes.jsonl", "{\"episode_index\": 3}\n"); }},
      {"episode twice",
       {"episode-duplicate"},
       [](Spoiler& s) { s.append("episodes.jsonl", "{\"episode_index\": 1, \"length\": 9}\n"); },
       1},
      {"episode gap",
       {"episode-gap", "count-mismatch", "file-unused"},
       [](Spoiler& s) {
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
       [](Spoiler& s) {
         s.info([](json& i) { i["discarded_episode_indices"] = {1}; });
         write_text(s.root / "meta/stats.json", "{}");
       },
       -1,
       -1,
       kNote},
      {"no tasks file",
       {"meta-missing"},
       [](Spoiler& s) { fs::remove(s.root / "meta/tasks.jsonl"); },
       -1,
       -1,
       kWarning},
      {"task line", {"task-line-invalid"}, [](Spoiler& s) { s.append("tasks.jsonl", "[]\n"); }},
      {"task twice",
       {"task-duplicate"},
       [](Spoiler& s) { s.append("tasks.jsonl", "{\"task_index\":1,\"task\":\"x\"}\n"); }},
      {"task unlisted",
       {"task-unlisted", "task-missing", "count-mismatch"},
       [](Spoiler& s) {
         write_text(s.root / "meta/tasks.jsonl", "{\"task_index\":0,\"task\":\"push\"}\n");
       },
       1,
       -1,
       kWarning},
      {"totals",
       {"count-mismatch"},
       [](Spoiler& s) { s.info([](json& i) { i["total_frames"] = 5; }); },
       -1,
       -1,
       kWarning},
      {"modality slice",
       {"modality-invalid"},
       [](Spoiler& s) {
         edit_json(s.root / "meta/modality.json", [](json& m) { m["action"]["arm"]["end"] = 9; });
       }},
      {"modality column",
       {"modality-column"},
       [](Spoiler& s) {
         edit_json(s.root / "meta/modality.json",
                   [](json& m) { m["state"]["arm"]["original_key"] = "none"; });
       },
       -1,
       -1,
       kWarning},
      {"stats not numbers",
       {"stats-invalid"},
       [](Spoiler& s) {
         edit_json(s.root / "meta/stats.json", [](json& m) { m["action"]["mean"] = "x"; });
       }},
      {"stats width",
       {"stats-width"},
       [](Spoiler& s) {
         edit_json(s.root / "meta/stats.json", [](json& m) { m["action"]["q01"] = {1, 2}; });
       }},
      {"no stats",
       {"stats-missing"},
       [](Spoiler& s) { fs::remove(s.root / "meta/stats.json"); },
       -1,
       -1,
       kNote},
      {"other data's stats",
       {"stats-mismatch"},
       [](Spoiler& s) {
         edit_json(s.root / "meta/stats.json", [](json& m) { m["action"]["mean"] = {0, 3, 0}; });
       },
       -1,
       -1,
       kWarning},
      {"other episode's stats",
       {"stats-mismatch"},
       [](Spoiler& s) { s.table(1, [](Columns& c) { fill(c, "action", 0, 1, 1.5); }); },
       1,
       -1,
       kWarning},
      {"default column",
       {"column-default"},
       [](Spoiler& s) { s.info([](json& i) { i["features"].erase("frame_index"); }); },
       -1,
       -1,
       kNote},
      {"unused file",
       {"file-unused"},
       [](Spoiler& s) { fs::copy_file(test_table_path(s.root, 0), test_table_path(s.root, 7)); },
       -1,
       -1,
       kNote},
  };
}

std::vector<Case> table_cases() {
  const auto with_numbers = [](const char* column, int64_t from, int64_t to, double value) {
    return [=](Spoiler& s) { s.table(1, [=](Columns& c) { fill(c, column, from, to, value); }); };
  };
  return {
      {"table missing",
       {"table-missing"},
       [](Spoiler& s) { fs::remove(test_table_path(s.root, 1)); },
       1},
      {"table cut",
       {"table-unreadable"},
       [](Spoiler& s) { s.cut(test_table_path(s.root, 1), 0.5); },
       1},
      {"table empty",
       {"table-unreadable"},
       [](Spoiler& s) { write_text(test_table_path(s.root, 1), ""); },
       1},
      {"rows",
       {"table-rows", "count-mismatch"},
       [](Spoiler& s) {
         std::string text = read_text_file(s.root / "meta/episodes.jsonl");
         text.replace(text.find("\"length\":20"), 11, "\"length\":21");
         write_text(s.root / "meta/episodes.jsonl", text);
       },
       1},
      {"column missing",
       {"column-missing"},
       [](Spoiler& s) {
         s.table(1,
                 [](Columns& c) { std::erase_if(c, [](auto& x) { return x.name == "action"; }); });
       },
       1},
      {"column type",
       {"column-type"},
       [](Spoiler& s) { s.table(1, [](Columns& c) { c[1].values = ParquetTextList(20, {"a"}); }); },
       1},
      {"column dtype",
       {"column-dtype"},
       [](Spoiler& s) {
         s.table(1, [](Columns& c) { c[1].values = find_numbers(c, "action").to(DType::kF64); });
       },
       1,
       -1,
       kWarning},
      {"column width",
       {"column-width"},
       [](Spoiler& s) {
         s.table(1, [](Columns& c) { c[1].values = HostTensor::zeros(DType::kF32, {20, 5}); });
       },
       1},
      {"column damaged",
       {"column-unreadable"},
       [](Spoiler& s) {
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
       [](Spoiler& s) {
         s.table(1, [](Columns& c) {
           for (float& value : find_numbers(c, "timestamp").as<float>()) value += 0.1F;
         });
       },
       1,
       0,
       kNote},
      {"constant dim",
       {"dim-constant", "stats-mismatch"},
       [](Spoiler& s) {
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
       [](Spoiler& s) {
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
       [](Spoiler& s) {
         s.table(1, [](Columns& c) { fill(c, "observation.state", 4 * 6 + 2, 4 * 6 + 3, 30); });
         edit_json(s.root / "meta/stats.json",
                   [](json& m) { m["observation.state"].erase("mean"); });
       },
       1,
       6,
       kWarning},
  };
}

std::vector<Case> picture_cases() {
  return {
      {"camera absent",
       {"camera-absent"},
       [](Spoiler& s) { fs::remove_all(s.video(0).parent_path()); }},
      {"camera shape",
       {"camera-shape"},
       [](Spoiler& s) {
         s.info([&](json& i) { i["features"][s.options.cameras[0]]["shape"] = {48, 64}; });
       }},
      {"video missing", {"video-missing"}, [](Spoiler& s) { fs::remove(s.video(1)); }, 1},
      {"video empty", {"video-empty"}, [](Spoiler& s) { write_text(s.video(1), ""); }, 1},
      {"video cut", {"video-cut"}, [](Spoiler& s) { s.cut(s.video(1), 0.8); }, 1},
      {"no video",
       {"video-unreadable"},
       [](Spoiler& s) { write_text(s.video(1), std::string(900, 'x')); },
       1},
      {"fewer frames",
       {"video-frames"},
       [](Spoiler& s) { write_test_video(s.video(1), 64, 48, 19, 10, {}); },
       1},
      {"more frames",
       {"video-frames"},
       [](Spoiler& s) { write_test_video(s.video(1), 64, 48, 21, 10, {}); },
       1,
       -1,
       kWarning},
      {"other size",
       {"video-size"},
       [](Spoiler& s) { write_test_video(s.video(1), 48, 64, 20, 10, {}); },
       1},
      {"other fps",
       {"video-fps"},
       [](Spoiler& s) { write_test_video(s.video(1), 64, 48, 20, 30, {}); },
       1,
       -1,
       kWarning},
      {"other codec",
       {"video-codec"},
       [](Spoiler& s) { write_test_video(s.video(1), 64, 48, 20, 10, {.codec = "mpeg4"}); },
       1,
       -1,
       kWarning},
      {"damaged picture",
       {"picture-damaged"},
       [](Spoiler& s) { s.scribble(s.video(1), 0.7, 200); },
       1},
      {"black pictures",
       {"picture-black", "picture-frozen"},
       [](Spoiler& s) { write_plain_video(s.video(1), 20, true); },
       1,
       0,
       kWarning},
      {"frozen pictures",
       {"picture-frozen"},
       [](Spoiler& s) { write_plain_video(s.video(1), 20, false); },
       1,
       1,
       kWarning},
  };
}

class ValidateTest : public ::testing::Test {
 protected:
  static constexpr int64_t kRows[] = {24, 20, 22};
  void SetUp() override {
    options_.lengths.assign(std::begin(kRows), std::end(kRows));
    options_.cameras = {"observation.images.top"};
    write_test_dataset(good_, options_);
  }
  void run(const Case& test) {
    SCOPED_TRACE(test.name);
    Spoiler spoiler{temp_ / "spoilt", options_};
    fs::remove_all(spoiler.root);
    fs::copy(good_, spoiler.root, fs::copy_options::recursive);
    test.spoil(spoiler);
    check(test, validate_dataset(spoiler.root, {.num_threads = 2}));
  }
  void check(const Case& test, const ValidationReport& report) {
    std::set<std::string> codes;
    for (const Fault& fault : report.faults) codes.insert(fault.code);
    EXPECT_EQ(codes, std::set<std::string>(test.codes.begin(), test.codes.end()))
        << format_report(report);
    const auto fault = std::find_if(report.faults.begin(), report.faults.end(),
                                    [&](const Fault& f) { return f.code == test.codes[0]; });
    ASSERT_NE(fault, report.faults.end());
    EXPECT_EQ(fault->severity, test.severity) << fault->what;
    EXPECT_EQ(fault->episode, test.episode) << fault->what;
    EXPECT_TRUE(test.row < 0 || fault->row == test.row) << fault->row << ": " << fault->what;
    EXPECT_FALSE(fault->what.empty());
    EXPECT_EQ(fault->what.find(temp_.path().string()), std::string::npos) << fault->what;
    seen_.insert(codes.begin(), codes.end());
  }
  TempDir temp_;
  fs::path good_ = temp_ / "good";
  TestDatasetOptions options_;
  std::set<std::string> seen_;
};

TEST_F(ValidateTest, SoundDatasetsHaveNoFaults) {
  const ValidationReport report = validate_dataset(good_);
  EXPECT_TRUE(report.faults.empty()) << format_report(report);
  EXPECT_EQ(report.version, "v2.1");
  EXPECT_EQ(report.num_episodes, 3);
  EXPECT_EQ(report.num_rows, 66);
  EXPECT_EQ(report.num_pictures, 66);
  EXPECT_FALSE(report.has_faults());
}

TEST_F(ValidateTest, EveryFaultIsNamed) {
  for (const auto& cases : {meta_cases(), table_cases(), picture_cases()}) {
    for (const Case& test : cases) run(test);
  }
  for (const FaultKind& kind : fault_kinds()) {
    EXPECT_TRUE(seen_.contains(std::string(kind.code))) << "no case gives " << kind.code;
  }
  for (const std::string& code : seen_) {
    EXPECT_TRUE(std::any_of(fault_kinds().begin(), fault_kinds().end(),
                            [&](const FaultKind& kind) { return kind.code == code; }))
        << code << " is not in fault_kinds()";
  }
  EXPECT_TRUE(std::is_sorted(fault_kinds().begin(), fault_kinds().end(),
                             [](const auto& a, const auto& b) { return a.code < b.code; }));
}

TEST_F(ValidateTest, PicturesInParquet) {
  options_.cameras = {"image"};
  options_.images_in_parquet = true;
  const fs::path root = temp_ / "images";
  write_test_dataset(root, options_);
  const ValidationReport good = validate_dataset(root);
  EXPECT_TRUE(good.faults.empty()) << format_report(good);
  EXPECT_EQ(good.num_pictures, 66);
  const auto spoil = [&](const std::function<void(ParquetImages&)>& edit) {
    edit_table(root, options_, 1,
               [&](Columns& columns) { edit(std::get<ParquetImages>(columns.back().values)); });
    return validate_dataset(root);
  };
  const auto expect_one = [](const ValidationReport& report, const std::string& code, int64_t row) {
    ASSERT_EQ(report.faults.size(), 1u) << format_report(report);
    EXPECT_EQ(report.faults[0].code, code);
    EXPECT_EQ(report.faults[0].episode, 1);
    EXPECT_EQ(report.faults[0].row, row);
  };
  expect_one(spoil([](auto& images) { images[5].bytes.resize(60); }), "picture-damaged", 5);
  expect_one(spoil([](auto& images) { images[17] = {.has_bytes = false}; }), "picture-damaged", 17);
  expect_one(spoil([](auto& images) { images[18] = {.has_bytes = false, .path = "../../x.png"}; }),
             "path-outside", 18);
  expect_one(spoil([](auto& images) {
               const auto png = encode_png(test_picture(32, 32, 0), 32, 32);
               images[3].bytes = {reinterpret_cast<const char*>(png.data()), png.size()};
             }),
             "picture-damaged", 3);
}

TEST_F(ValidateTest, ReportDoesNotDependOnThreads) {
  Spoiler spoiler{good_, options_};
  for (int64_t episode = 0; episode < 3; ++episode) {
    spoiler.table(episode, [](Columns& c) { fill(c, "timestamp", 3, 4, 0); });
  }
  const std::string one = format_report(validate_dataset(good_, {.num_threads = 1}));
  const std::string four = format_report(validate_dataset(good_, {.num_threads = 4}));
  EXPECT_EQ(one, four);
}

TEST_F(ValidateTest, ReportIsATable) {
  Spoiler{good_, options_}.info([](json& i) { i["total_frames"] = 1; });
  const std::string text = format_report(validate_dataset(good_));
  EXPECT_NE(text.find("warning: [count-mismatch] meta/info.json: total_frames is 1, but the meta "
                      "lists 66. Correct the number in meta/info.json.\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("0 errors, 1 warnings, 0 notes"), std::string::npos) << text;
}

// --- Real datasets: exactly these faults ---

struct Expected {
  const char* code;
  Severity severity;
  int64_t episode, row, count;
};

void expect_report(const fs::path& root, const std::vector<Expected>& expected) {
  const ValidationReport report = validate_dataset(root);
  ASSERT_EQ(report.faults.size(), expected.size()) << format_report(report);
  for (size_t i = 0; i < expected.size(); ++i) {
    const Fault& fault = report.faults[i];
    EXPECT_EQ(fault.code, expected[i].code) << i;
    EXPECT_EQ(fault.severity, expected[i].severity) << fault.what;
    EXPECT_EQ(fault.episode, expected[i].episode) << fault.what;
    EXPECT_EQ(fault.row, expected[i].row) << fault.what;
    EXPECT_EQ(fault.count, expected[i].count) << fault.what;
  }
}

TEST(ValidateRealDataTest, Gr1) {
  const fs::path root = real_data_folder() / "gr1_picknplace_v20";
  if (!fs::exists(root)) GTEST_SKIP() << "absent: gr1_picknplace_v20 in WAM_DATA_DIR";
  expect_report(root, {{"column-default", kNote, -1, -1, 1},  // no frame_index
                       {"camera-absent", kWarning, -1, -1, 1},
                       {"timestamp-offset", kNote, 0, 0, 1},  // (i + 1) / fps
                       {"timestamp-offset", kNote, 1, 0, 1},
                       {"timestamp-offset", kNote, 2, 0, 1},
                       {"timestamp-offset", kNote, 3, 0, 1},
                       {"timestamp-offset", kNote, 4, 0, 1},
                       {"dim-constant", kNote, -1, -1, 25},  // legs, waist, neck
                       {"dim-constant", kNote, -1, -1, 18},
                       {"value-outlier", kWarning, 0, 0, 8}});  // a hand settling at the start
}

TEST(ValidateRealDataTest, Cr5WithItsMetaTrimmed) {
  const fs::path data = real_data_folder() / "cr5_v21_av1";
  const fs::path meta = real_data_folder() / "derived/trimmed_meta/cr5_v21_av1/meta";
  if (!fs::exists(data) || !fs::exists(meta)) GTEST_SKIP() << "absent: cr5_v21_av1 in WAM_DATA_DIR";
  const TempDir temp;
  fs::copy(meta, temp / "meta", fs::copy_options::recursive);
  fs::create_directory_symlink(data / "data", temp / "data");
  fs::create_directory_symlink(data / "videos", temp / "videos");
  // Wall-clock timestamps.
  std::vector<Expected> expected = {{"stats-missing", kNote, -1, -1, 1}};
  const int64_t lengths[] = {197, 215, 275, 209, 237, 199};
  for (int64_t episode = 0; episode < 6; ++episode) {
    expected.push_back({"timestamp-jitter", kWarning, episode, 1, lengths[episode] - 1});
    expected.push_back({"timestamp-offset", kNote, episode, 0, 1});
  }
  expect_report(temp.path(), expected);
}

}  // namespace
}  // namespace wam::data
