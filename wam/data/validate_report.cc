#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "wam/data/validate.h"

namespace wam::data {
namespace {

std::string place_of(const Fault& fault) {
  std::string place = fault.file.empty() ? "dataset" : fault.file;
  if (fault.episode >= 0) place += fmt::format(" episode {}", fault.episode);
  if (fault.row >= 0) place += fmt::format(" row {}", fault.row);
  return place;
}

std::string fault_line(const Fault& fault) {
  std::string line =
      fmt::format("{}: [{}] {}: {}", name(fault.severity), fault.code, place_of(fault), fault.what);
  if (fault.count > 1) line += fmt::format(" ({} in all)", fault.count);
  if (!fault.remedy.empty()) line += ". " + fault.remedy;
  return line + "\n";
}

struct Total {
  Severity severity = Severity::kNote;
  int64_t faults = 0, places = 0;
  int64_t episodes = 0, last_episode = -1;
};

std::map<std::string, Total> totals_by_code(const ValidationReport& report) {
  std::map<std::string, Total> totals;
  for (const Fault& fault : report.faults) {
    Total& total = totals[fault.code];
    total.severity = std::max(total.severity, fault.severity);
    ++total.faults;
    total.places += fault.count;
    if (fault.episode < 0 || fault.episode == total.last_episode) continue;
    ++total.episodes;
    total.last_episode = fault.episode;
  }
  return totals;
}

}  // namespace

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "";
}

std::string format_report(const ValidationReport& report) {
  std::string text;
  for (const Fault& fault : report.faults) text += fault_line(fault);
  text += fmt::format("\n{}: LeRobot {}, {} episodes, {} rows, {} pictures read\n",
                      report.root.string(), report.version.empty() ? "?" : report.version,
                      report.num_episodes, report.num_rows, report.num_pictures);
  if (report.faults.empty()) return text + "no faults\n";
  text += fmt::format("{:<22} {:<8} {:>7} {:>9} {:>9}\n", "code", "severity", "faults", "episodes",
                      "places");
  for (const auto& [code, total] : totals_by_code(report)) {
    text += fmt::format("{:<22} {:<8} {:>7} {:>9} {:>9}\n", code, name(total.severity),
                        total.faults, total.episodes, total.places);
  }
  return text + fmt::format("{} errors, {} warnings, {} notes\n", report.count(Severity::kError),
                            report.count(Severity::kWarning), report.count(Severity::kNote));
}

}  // namespace wam::data
