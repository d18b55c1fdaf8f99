#include "wam/data/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/coded_error.h"

namespace wam::data {
namespace {

constexpr std::pair<const char*, FaultPolicy> kPolicies[] = {{"off", FaultPolicy::kOff},
                                                             {"auto", FaultPolicy::kAuto},
                                                             {"warn", FaultPolicy::kWarn},
                                                             {"exclude", FaultPolicy::kExclude},
                                                             {"refuse", FaultPolicy::kRefuse}};

std::string place_of(const Fault& fault) {
  std::string place = fault.file.empty() ? "dataset" : fault.file;
  if (fault.episode >= 0) place += fmt::format(" episode {}", fault.episode);
  if (fault.row >= 0) place += fmt::format(" row {}", fault.row);
  return place;
}

[[noreturn]] void refuse(const Fault& fault, const Dataset& dataset, const std::string& more) {
  throw CodedError(
      fault.code, {.where = dataset.root().string() + ": " + place_of(fault),
                   .what = fmt::format("{} [{}]: {}", name(fault.severity), fault.code, fault.what),
                   .remedy = fault.remedy + (fault.remedy.empty() ? "" : " ") + more});
}

// The first fault of a kind, and in how many episodes it occurs.
struct Kind {
  const Fault* first = nullptr;
  std::set<int64_t> episodes;
  int64_t faults = 0;
};

std::string line_of(const Kind& kind) {
  const Fault& fault = *kind.first;
  std::string text =
      fmt::format("{} [{}] {}: {}", name(fault.severity), fault.code, place_of(fault), fault.what);
  if (kind.episodes.size() > 1) {
    text += fmt::format("; in {} episodes", kind.episodes.size());
  } else if (kind.faults > 1) {
    text += fmt::format("; {} such faults", kind.faults);
  }
  return text + ". " + fault.remedy;
}

std::vector<std::string> lines_of(const ValidationReport& report) {
  std::map<std::pair<int, std::string>, Kind> kinds;
  for (const Fault& fault : report.faults) {
    if (fault.severity == Severity::kNote) continue;
    Kind& kind = kinds[{-static_cast<int>(fault.severity), fault.code}];
    if (kind.first == nullptr) kind.first = &fault;
    ++kind.faults;
    if (fault.episode >= 0) kind.episodes.insert(fault.episode);
  }
  std::vector<std::string> lines;
  for (const auto& [key, kind] : kinds) lines.push_back(line_of(kind));
  return lines;
}

std::vector<int64_t> faulty_episodes(const ValidationReport& report, const Dataset& dataset) {
  std::set<int64_t> faulty;
  for (const Fault& fault : report.faults) {
    if (fault.severity != Severity::kNote) faulty.insert(fault.episode);
  }
  std::vector<int64_t> result;
  for (const Episode& episode : dataset.episodes()) {
    if (faulty.contains(episode.index)) result.push_back(episode.index);
  }
  return result;
}

int64_t count_pictures(const Dataset& dataset) {
  int64_t rows = 0;
  for (const Episode& episode : dataset.episodes()) rows += episode.length;
  const int64_t cameras =
      std::ranges::count_if(dataset.features(), [](const Feature& f) { return f.is_camera(); });
  return rows * std::max<int64_t>(1, cameras);
}

}  // namespace

FaultPolicy parse_fault_policy(const std::string& text, const std::string& where) {
  for (const auto& [name, policy] : kPolicies) {
    if (text == name) return policy;
  }
  throw ConfigError({.where = where,
                     .what = "not a way to treat faults",
                     .got = quote(text),
                     .expected = "off, auto, warn, exclude or refuse",
                     .remedy = "Choose one of these."});
}

Screening apply_policy(const ValidationReport& report, const Dataset& dataset, FaultPolicy policy) {
  for (const Fault& fault : report.faults) {
    const bool is_error = fault.severity == Severity::kError;
    if (policy == FaultPolicy::kRefuse && fault.severity != Severity::kNote) {
      refuse(fault, dataset,
             fmt::format("{} errors and {} warnings in all: `wam validate` lists them; `faults: "
                         "exclude` leaves their episodes out, `faults: warn` goes on.",
                         report.count(Severity::kError), report.count(Severity::kWarning)));
    }
    if (policy == FaultPolicy::kExclude && is_error && fault.episode < 0) {
      refuse(fault, dataset, "No episode can be left out for it.");
    }
  }
  Screening screening{.lines = lines_of(report), .excluded = {}};
  if (policy == FaultPolicy::kExclude) screening.excluded = faulty_episodes(report, dataset);
  return screening;
}

Screening screen_dataset(const Dataset& dataset, FaultPolicy policy) {
  if (policy == FaultPolicy::kOff) return {};
  if (policy == FaultPolicy::kAuto && count_pictures(dataset) > kAutoPictures) return {};
  return apply_policy(validate_dataset(dataset.root()), dataset, policy);
}

}  // namespace wam::data
