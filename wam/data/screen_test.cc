// Every fault that `wam validate` names is refused, or its episode left out, when a run asks so.
#include "wam/data/screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "wam/base/files.h"
#include "wam/data/coded_error.h"
#include "wam/data/validate_cases.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class ScreenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.lengths = {24, 20, 22};
    options_.cameras = {"observation.images.top"};
  }
  // The dataset as training opens it, spoilt; null if it cannot be opened at all.
  std::unique_ptr<Dataset> spoil(const FaultCase& test, const std::string& version) {
    options_.version = version;
    const fs::path good = temp_ / version;
    if (!fs::exists(good)) write_test_dataset(good, options_);
    root_ = temp_ / "spoilt";
    fs::remove_all(root_);
    fs::copy(good, root_, fs::copy_options::recursive);
    test.spoil(Spoiler{root_, options_});
    try {
      return open_dataset(root_);
    } catch (const DataError& error) {
      EXPECT_FALSE(error.info().remedy.empty()) << error.what();
      ++num_refused_at_once_;
      return nullptr;
    }
  }
  void check(const FaultCase& test, const std::string& version) {
    SCOPED_TRACE(test.name);
    const auto dataset = spoil(test, version);
    if (dataset == nullptr) return;
    const ValidationReport report = validate_dataset(root_, {.num_threads = 2});
    check_refusal(test, report, *dataset);
    check_exclusion(test, report, *dataset);
  }
  // The first fault that is more than a note is named by its code.
  void check_refusal(const FaultCase& test, const ValidationReport& report,
                     const Dataset& dataset) {
    const std::string error =
        error_of([&] { apply_policy(report, dataset, FaultPolicy::kRefuse); });
    if (!report.has_faults()) {
      EXPECT_EQ(test.severity, Severity::kNote);
      EXPECT_EQ(error, "");
      return;
    }
    const bool is_named = std::ranges::any_of(test.codes, [&](const std::string& code) {
      return error.find("[" + code + "]") != std::string::npos;
    });
    EXPECT_TRUE(is_named) << error;
  }
  // Either the whole dataset is refused, or every kind is said and every episode that has an error
  // or warning of its own is gone.
  void check_exclusion(const FaultCase& test, const ValidationReport& report,
                       const Dataset& dataset) {
    Screening screening;
    const std::string error =
        error_of([&] { screening = apply_policy(report, dataset, FaultPolicy::kExclude); });
    if (!error.empty()) {
      EXPECT_NE(error.find("error ["), std::string::npos) << error;
      return;
    }
    for (const Fault& fault : report.faults) {
      if (fault.severity == Severity::kNote) continue;
      EXPECT_TRUE(std::ranges::any_of(screening.lines, [&](const std::string& line) {
        return line.find("[" + fault.code + "]") != std::string::npos;
      })) << fault.code;
      const bool is_there = std::ranges::any_of(
          dataset.episodes(), [&](const Episode& e) { return e.index == fault.episode; });
      EXPECT_EQ(std::ranges::count(screening.excluded, fault.episode), is_there ? 1 : 0);
    }
    if (test.episode >= 0 && test.severity != Severity::kNote) {
      EXPECT_EQ(std::ranges::count(screening.excluded, test.episode), 1);
    }
  }
  TempDir temp_;
  fs::path root_;
  TestDatasetOptions options_;
  int num_refused_at_once_ = 0;
};

TEST_F(ScreenTest, EveryFaultIsRefusedOrLeftOut) {
  for (const auto& cases : {meta_fault_cases(), table_fault_cases(), picture_fault_cases()}) {
    for (const FaultCase& test : cases) check(test, "v2.1");
  }
  for (const FaultCase& test : v3_fault_cases()) check(test, "v3.0");
  EXPECT_GT(num_refused_at_once_, 10);
}

TEST_F(ScreenTest, AutoSaysAndGoesOn) {
  const FaultCase black{"black", {}, [](const Spoiler& s) {
                          s.table(1, [](auto& c) { fill(c, "timestamp", 5, 6, 0.53); });
                        }};
  const auto dataset = spoil(black, "v2.1");
  ASSERT_NE(dataset, nullptr);
  const Screening screening = screen_dataset(*dataset, FaultPolicy::kAuto);
  EXPECT_TRUE(screening.excluded.empty());
  ASSERT_EQ(screening.lines.size(), 1u);
  EXPECT_NE(screening.lines[0].find("warning [timestamp-jitter] data/chunk-000/"
                                    "episode_000001.parquet episode 1 row 5: "),
            std::string::npos)
      << screening.lines[0];
  EXPECT_TRUE(screen_dataset(*dataset, FaultPolicy::kOff).lines.empty());
  EXPECT_EQ(screen_dataset(*dataset, FaultPolicy::kExclude).excluded, std::vector<int64_t>{1});
  EXPECT_THROW(screen_dataset(*dataset, FaultPolicy::kRefuse), CodedError);
  EXPECT_THROW(parse_fault_policy("perhaps", "dataset.faults"), ConfigError);
}

}  // namespace
}  // namespace wam::data
