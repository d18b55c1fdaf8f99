// For tests: a robot of one small camera on disk, and a run on it that trains in moments.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/run_wam.h"
#include "wam/base/files.h"
#include "wam/data/lerobot_testing.h"

namespace wam::cli_test {

// A dataset and a config in a folder of their own; each test may spoil both.
class SmallRobot {
 public:
  explicit SmallRobot(std::vector<int64_t> lengths = {24});

  const std::filesystem::path& folder() const { return folder_.path(); }
  std::filesystem::path dataset() const { return folder_ / "dataset"; }
  std::filesystem::path run_dir() const { return folder_ / "run"; }
  std::filesystem::path video(int64_t episode = 0) const;
  std::filesystem::path table(int64_t episode = 0) const;
  const data::TestDatasetOptions& options() const { return options_; }

  // wam train run.yaml ARGUMENTS...; two steps, a checkpoint after each.
  RunResult train(std::vector<std::string> arguments = {}, RunOptions options = {}) const;
  // wam plan run.yaml OVERRIDES...
  RunResult plan(std::vector<std::string> overrides) const;
  // wam stats dataset --out metadata.json --force
  RunResult stats() const;

 private:
  TempDir folder_;
  data::TestDatasetOptions options_;
};

// Keeps the first `share` of a file.
void cut_file(const std::filesystem::path& path, double share);

}  // namespace wam::cli_test
