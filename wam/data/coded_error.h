// A DataError that also carries the code under which `wam validate` reports the fault.
#pragma once

#include <string>
#include <utility>

#include "wam/base/error.h"

namespace wam::data {

struct CodedError : DataError {
  CodedError(std::string fault_code, ErrorInfo info)
      : DataError(std::move(info)), code(std::move(fault_code)) {}
  std::string code;  // "video-empty"
};

// The error's code, or `fallback` for one that has none.
inline std::string code_of(const DataError& error, const std::string& fallback) {
  const auto* coded = dynamic_cast<const CodedError*>(&error);
  return coded == nullptr ? fallback : coded->code;
}

}  // namespace wam::data
