// Reads a whole dataset and reports everything that is wrong with it. Never throws for bad data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wam::data {

enum class Severity {
  kNote,     // worth knowing; nothing is wrong
  kWarning,  // usable, but look at it
  kError,    // training refuses it or would learn something wrong
};

struct Fault {
  std::string code;  // "video-frames"; stable, for scripts
  Severity severity = Severity::kError;
  std::string file;      // relative to the dataset's folder
  int64_t episode = -1;  // -1: the whole dataset
  int64_t row = -1;      // the first row concerned; -1: none
  int64_t count = 1;     // rows, frames or dims concerned
  std::string what;      // place, value and rule in one line
  std::string remedy;
};

struct ValidationReport {
  std::filesystem::path root;
  std::string version;        // empty if unknown
  int64_t num_episodes = 0;   // of the meta
  int64_t num_rows = 0;       // read
  int64_t num_pictures = 0;   // decoded
  std::vector<Fault> faults;  // meta first, then by episode

  int64_t count(Severity severity) const;
  // Errors or warnings: what makes `wam validate` exit with 3.
  bool has_faults() const { return count(Severity::kError) + count(Severity::kWarning) > 0; }
};

struct ValidateOptions {
  bool decode_pictures = true;  // false: tables and video indexes only
  int num_threads = 0;          // 0: one a processor
  // Largest distance of a timestamp from row / fps that counts as regular: LeRobot's own.
  double timestamp_tolerance_s = 1e-4;
  std::function<void(int64_t done, int64_t total)> progress;  // episodes; called from one thread
};

// Deterministic: the report does not depend on the number of threads.
ValidationReport validate_dataset(const std::filesystem::path& root,
                                  const ValidateOptions& options = {});

// Every code there is, sorted, with what it means.
struct FaultKind {
  std::string_view code, meaning;
};
std::span<const FaultKind> fault_kinds();

std::string_view name(Severity severity);
// One line a fault, then a table of counts by code, for a terminal.
std::string format_report(const ValidationReport& report);

}  // namespace wam::data
