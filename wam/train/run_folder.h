// The folder of a run: locked by one process, holding the resolved config, how it was started, and
// what it ran on.
#pragma once

#include <filesystem>
#include <string>

#include "wam/train/config.h"

namespace wam::train {

class RunFolder {
 public:
  // Creates and locks the folder. DataError if another process holds it or it cannot be written;
  // ConfigError if it has checkpoints and the run does not resume.
  RunFolder(const TrainConfig& config, bool resume);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // config.yaml, run.json (command line, version, machine), metadata.json.
  void describe(const TrainConfig& config, const std::string& command_line,
                const std::string& metadata_json, const std::string& plan_text) const;

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

// The project's version, "0.1.0".
std::string version_text();

}  // namespace wam::train
