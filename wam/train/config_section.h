// Private to config*.cc: keys of a section are stated once, in one function that reads and writes.
// Brings yaml-cpp.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/data/yaml_fields.h"
#include "wam/train/config.h"

namespace wam::train {

using data::YamlFields;

[[noreturn]] inline void fail(const std::string& where, const std::string& what, const std::string& got,
                       const std::string& expected, const std::string& remedy = "") {
  throw ConfigError(
      {.where = where, .what = what, .got = got, .expected = expected, .remedy = remedy});
}

inline size_t choose(const std::string& where, const std::string& value, const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == value) return i;
  }
  fail(where, "unknown value", "'" + value + "'", "one of " + join(names, ", "), name_hint(value, names));
}

class Section {
 public:
  // Reading: `node` given. Writing: lines are collected.
  Section(const YAML::Node& node, std::string where, std::vector<std::string> keys)
      : fields_(std::make_unique<YamlFields>(node, std::move(where), std::move(keys))) {}
  explicit Section(std::string indent) : indent_(std::move(indent)) {}

  template <typename T>
  void field(const std::string& key, T& value) {
    if (fields_) {
      fields_->read(key, value);
    } else {
      line(key, print(value));
    }
  }
  void choice(const std::string& key, int& value, const std::vector<std::string>& names) {
    std::string text = names[static_cast<size_t>(value)];
    field(key, text);
    if (fields_ && fields_->has(key)) value = static_cast<int>(choose(fields_->where(key), text, names));
  }
  bool reading() const { return fields_ != nullptr; }
  const YamlFields& fields() const { return *fields_; }
  void line(const std::string& key, const std::string& value) {
    text_ += indent_ + key + ": " + value + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  static std::string print(bool v) { return v ? "true" : "false"; }
  static std::string print(double v) { return fmt::format("{}", v); }
  static std::string print(const std::string& v) {
    YAML::Emitter out;
    out << YAML::DoubleQuoted << v;
    return out.c_str();
  }
  template <typename T>
    requires std::is_integral_v<T>
  static std::string print(T v) {
    return fmt::format("{}", v);
  }
  template <typename T>
  static std::string print(const std::vector<T>& values) {
    std::vector<std::string> parts;
    for (const T& v : values) parts.push_back(print(v));
    return "[" + join(parts, ", ") + "]";
  }

  std::unique_ptr<YamlFields> fields_;
  std::string indent_, text_;
};

// The section `dataset`, and the keys it may have.
void dataset_fields(Section& s, DatasetSection& d);
const std::vector<std::string>& dataset_keys();
// Numbers in range, and what excludes each other.
void check_dataset(const DatasetSection& d);

}  // namespace wam::train
