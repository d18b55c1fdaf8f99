#include "wam/cli/embodiment_arg.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"

namespace wam::cli {
namespace {

YAML::Node load_yaml(const std::string& path) {
  try {
    return YAML::Load(read_text_file(path, size_t{16} << 20));
  } catch (const YAML::Exception& error) {
    throw ConfigError({.where = path + ", line " + std::to_string(error.mark.line + 1),
                       .what = "is not YAML (" + error.msg + ")",
                       .expected = "an embodiment block",
                       .remedy = "configs/embodiments/sim_table.yaml is an example."});
  }
}

// The block itself, wherever in the file it stands.
YAML::Node find_block(const YAML::Node& root) {
  if (!root.IsMap()) return root;
  if (root["embodiment"]) return root["embodiment"];
  if (root["dataset"] && root["dataset"].IsMap() && root["dataset"]["embodiment"]) {
    return root["dataset"]["embodiment"];
  }
  return root;
}

}  // namespace

data::Embodiment embodiment_from_argument(const std::string& preset_or_file) {
  const std::vector<std::string> presets = data::embodiment_preset_names();
  if (std::find(presets.begin(), presets.end(), preset_or_file) != presets.end()) {
    return data::embodiment_preset(preset_or_file);
  }
  std::error_code ignored;
  if (!std::filesystem::exists(preset_or_file, ignored)) {
    throw ConfigError({.where = "--embodiment",
                       .what = "neither a built-in robot nor a file",
                       .got = quote(preset_or_file),
                       .expected = "a YAML file, or one of " + join(presets, ", "),
                       .remedy = name_hint(preset_or_file, presets)});
  }
  const YAML::Node block = find_block(load_yaml(preset_or_file));
  try {
    return data::parse_embodiment(block);
  } catch (ConfigError& error) {
    error.add_context(preset_or_file);
    throw;
  }
}

}  // namespace wam::cli
