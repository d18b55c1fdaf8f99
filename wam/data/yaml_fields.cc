#include "wam/data/yaml_fields.h"

#include <algorithm>
#include <set>

#include "wam/base/strings.h"

namespace wam::data {
namespace {

std::string position(const YAML::Node& node) {
  const int line = node.Mark().line;
  return line < 0 ? "" : ", line " + std::to_string(line + 1);
}

std::string shown(const YAML::Node& node) {
  if (node.IsScalar()) return "'" + node.Scalar() + "'";
  return node.IsSequence() ? "a list" : node.IsMap() ? "a map" : "nothing";
}

}  // namespace

YamlFields::YamlFields(const YAML::Node& node, std::string where, std::vector<std::string> valid)
    : map_(node), where_(std::move(where)) {
  if (!node.IsMap()) throw_wrong_type(node, where_ + position(node), "a map of keys to values");
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    if (std::find(valid.begin(), valid.end(), key) == valid.end()) {
      throw ConfigError({.where = where_ + position(entry.first),
                         .what = "unknown key",
                         .got = "'" + key + "'",
                         .expected = "a key of " + where_,
                         .remedy = name_hint(key, valid)});
    }
    if (!seen.insert(key).second) {
      throw ConfigError({.where = where_ + position(entry.first),
                         .what = "key given twice",
                         .got = "'" + key + "'",
                         .remedy = "Keep one of the two."});
    }
  }
}

bool YamlFields::has(const std::string& key) const { return static_cast<bool>(find(key)); }

std::string YamlFields::where(const std::string& key) const {
  return where_ + "." + key + (has(key) ? position(find(key)) : "");
}

YAML::Node YamlFields::sequence(const std::string& key) const {
  const YAML::Node node = find(key);
  if (!node.IsSequence()) throw_wrong_type(node, where(key), "a list");
  return node;
}

YAML::Node YamlFields::find(const std::string& key) const {
  const YAML::Node& map = map_;  // const lookup: does not insert
  return map[key];
}

void YamlFields::throw_wrong_type(const YAML::Node& node, const std::string& where,
                                  const char* expected) {
  throw ConfigError({.where = where,
                     .what = "value of the wrong type",
                     .got = shown(node),
                     .expected = expected,
                     .remedy = "docs/config.md lists every key with its type."});
}

}  // namespace wam::data
