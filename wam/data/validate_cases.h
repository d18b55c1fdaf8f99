// For tests: one spoilt dataset for every fault that `wam validate` knows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "wam/data/lerobot_testing.h"
#include "wam/data/validate.h"

namespace wam::data {

// A dataset in a temporary folder, and ways to spoil it.
struct Spoiler {
  std::filesystem::path root;
  TestDatasetOptions options;  // one camera, three episodes of 24, 20 and 22 rows

  void info(const std::function<void(nlohmann::json&)>& edit) const;
  void table(int64_t episode,
             const std::function<void(std::vector<ParquetColumnData>&)>& edit) const;
  std::filesystem::path video(int64_t episode) const;
  // Adds text at the end of a file of the meta folder.
  void append(const char* meta_file, const std::string& text) const;
  // Overwrites bytes from a place (0 to 1) of a file on.
  void scribble(const std::filesystem::path& path, double place, size_t count) const;
  // Keeps the first `share` of a file.
  void cut(const std::filesystem::path& path, double share) const;
};

struct FaultCase {
  const char* name;
  // Codes that must be reported, and no others; the first is what the case is about.
  std::vector<std::string> codes;
  std::function<void(const Spoiler&)> spoil;
  int64_t episode = -1, row = -1;  // of the first fault of the first code
  Severity severity = Severity::kError;
};

std::vector<FaultCase> meta_fault_cases();
std::vector<FaultCase> table_fault_cases();
std::vector<FaultCase> picture_fault_cases();
// Of a v3.0 dataset with two episodes to a file.
std::vector<FaultCase> v3_fault_cases();

// Sets elements from..to of a column, counted row-major.
void fill(std::vector<ParquetColumnData>& columns, const std::string& name, int64_t from,
          int64_t to, double value);

}  // namespace wam::data
