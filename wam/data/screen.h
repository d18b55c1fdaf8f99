// A dataset looked over before a run trains on it: what `wam validate` finds is said, left out or
// refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/validate.h"

namespace wam::data {

enum class FaultPolicy {
  kOff,
  kAuto,     // as kWarn for sets of at most kAutoPictures pictures, else nothing
  kWarn,     // every kind of error and warning is said once
  kExclude,  // episodes with an error or warning of their own are left out as well
  kRefuse,   // an error or a warning anywhere ends it
};
// A check of so many pictures takes seconds.
inline constexpr int64_t kAutoPictures = 20000;

// "off", "auto", "warn", "exclude", "refuse"; throws ConfigError at `where`.
FaultPolicy parse_fault_policy(const std::string& text, const std::string& where);

struct Screening {
  std::vector<std::string> lines;  // one for every kind of fault, the worst first
  std::vector<int64_t> excluded;   // episode indexes, ascending
};

// What the policy makes of a report on `dataset`. With kExclude an error that belongs to no
// episode, and with kRefuse any error or warning, is thrown as CodedError with the fault's code.
Screening apply_policy(const ValidationReport& report, const Dataset& dataset, FaultPolicy policy);

// Validates tables and pictures as the policy demands, and applies it.
Screening screen_dataset(const Dataset& dataset, FaultPolicy policy);

}  // namespace wam::data
