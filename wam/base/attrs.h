// Attributes of an op: a small sorted map from names to plain values. Comparable and hashable, so
// that equal nodes can be found; printable, so that a graph has a text form. Read once when a kernel
// is prepared, never in the hot loop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace wam {

using AttrValue =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string_view, AttrValue>> items);

  void set(std::string_view key, AttrValue value);
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // Typed reads. A missing key or another type is our bug (InternalError), unless a fallback is given.
  bool flag(std::string_view key, bool fallback = false) const;
  int64_t integer(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t fallback) const;
  double real(std::string_view key) const;
  double real(std::string_view key, double fallback) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  const std::string& text(std::string_view key) const;
  const std::vector<int64_t>& integers(std::string_view key) const;
  std::vector<int64_t> integers_or_empty(std::string_view key) const;

  bool empty() const { return items_.empty(); }
  const std::vector<std::pair<std::string, AttrValue>>& items() const { return items_; }
  std::string to_string() const;  // {a=1, b=[1,2], c="x"}; empty text when there are none
  uint64_t hash() const;
  bool operator==(const Attrs&) const = default;

 private:
  const AttrValue* find(std::string_view key) const;
  template <typename T>
  const T& get(std::string_view key) const;
  std::vector<std::pair<std::string, AttrValue>> items_;  // sorted by key
};

}  // namespace wam
