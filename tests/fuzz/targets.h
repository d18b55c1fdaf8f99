// Every reader of bytes from outside, as one function of a string each: what the fuzzer drives and
// the replay test runs over its seeds. A refusal (DataError, ConfigError) is a good answer; any
// other exception, a fault or endless work is a finding.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wam::fuzz {

struct Target {
  std::string_view name;
  void (*run)(std::string_view bytes);
};

// "config_yaml", "json_lines", "parquet", "pickle", "safetensors", "safetensors_index", "tfevents",
// "torch_zip".
std::span<const Target> targets();
const Target& find_target(std::string_view name);

// Valid files of that format and hostile ones made from them: where the fuzzer starts.
std::vector<std::string> seeds(std::string_view target);

}  // namespace wam::fuzz
