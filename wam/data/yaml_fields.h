// Strict reading of one YAML map: every key must be asked for, once, and have the right type.
// Include in .cc files only: it brings yaml-cpp.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <type_traits>
#include <vector>

#include "wam/base/error.h"

namespace wam::data {

class YamlFields {
 public:
  // `where` names the map in messages ("embodiment"); `valid` are all keys it may have. Throws
  // ConfigError on an unknown or repeated key or if `node` is not a map.
  YamlFields(const YAML::Node& node, std::string where, std::vector<std::string> valid);

  bool has(const std::string& key) const;
  YAML::Node node(const std::string& key) const { return find(key); }
  std::string where(const std::string& key) const;  // "embodiment.views, line 7"

  // Overwrites `value` if the key is present.
  template <typename T>
  void read(const std::string& key, T& value) const {
    if (has(key)) value = convert<T>(find(key), where(key));
  }
  template <typename T>
  void read(const std::string& key, std::vector<T>& values) const {
    if (!has(key)) return;
    const YAML::Node list = sequence(key);
    values.clear();
    for (const YAML::Node& item : list) values.push_back(convert<T>(item, where(key)));
  }
  // The node of `key`, which must be a list.
  YAML::Node sequence(const std::string& key) const;

  template <typename T>
  static T convert(const YAML::Node& node, const std::string& where) {
    T value{};
    if (!node.IsScalar() || !YAML::convert<T>::decode(node, value)) {
      throw_wrong_type(node, where, type_name<T>());
    }
    return value;
  }

 private:
  template <typename T>
  static constexpr const char* type_name() {
    if constexpr (std::is_same_v<T, bool>)
      return "true or false";
    else if constexpr (std::is_integral_v<T>)
      return "an integer";
    else if constexpr (std::is_floating_point_v<T>)
      return "a number";
    else
      return "text";
  }
  [[noreturn]] static void throw_wrong_type(const YAML::Node& node, const std::string& where,
                                            const char* expected);
  YAML::Node find(const std::string& key) const;

  YAML::Node map_;
  std::string where_;
};

}  // namespace wam::data
