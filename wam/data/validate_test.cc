// Every fault has a dataset made for it; real datasets give exactly the lists kept here.
#include "wam/data/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "wam/base/files.h"
#include "wam/data/image_codec.h"
#include "wam/data/lerobot_testing.h"
#include "wam/data/validate_cases.h"
#include "wam/data/video_testing.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Columns = std::vector<ParquetColumnData>;

const Severity kNote = Severity::kNote, kWarning = Severity::kWarning;

class ValidateTest : public ::testing::Test {
 protected:
  static constexpr int64_t kRows[] = {24, 20, 22};
  void SetUp() override {
    options_.lengths.assign(std::begin(kRows), std::end(kRows));
    options_.cameras = {"observation.images.top"};
    write_test_dataset(good_, options_);
    TestDatasetOptions v3 = options_;
    v3.version = "v3.0";
    write_test_dataset(good_v3_, v3);
  }
  void run(const FaultCase& test) { run(test, good_); }
  void run(const FaultCase& test, const fs::path& good) {
    SCOPED_TRACE(test.name);
    Spoiler spoiler{temp_ / "spoilt", options_};
    fs::remove_all(spoiler.root);
    fs::copy(good, spoiler.root, fs::copy_options::recursive);
    test.spoil(spoiler);
    check(test, validate_dataset(spoiler.root, {.num_threads = 2}));
  }
  void check(const FaultCase& test, const ValidationReport& report) {
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
  fs::path good_ = temp_ / "good", good_v3_ = temp_ / "good_v3";
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
  const ValidationReport v3 = validate_dataset(good_v3_);
  EXPECT_TRUE(v3.faults.empty()) << format_report(v3);
  EXPECT_EQ(v3.version, "v3.0");
  EXPECT_EQ(v3.num_rows, 66);
  EXPECT_EQ(v3.num_pictures, 66);
}

TEST_F(ValidateTest, EveryFaultIsNamed) {
  for (const auto& cases : {meta_fault_cases(), table_fault_cases(), picture_fault_cases()}) {
    for (const FaultCase& test : cases) run(test);
  }
  for (const FaultCase& test : v3_fault_cases()) run(test, good_v3_);
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
