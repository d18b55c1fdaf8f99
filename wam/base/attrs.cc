#include "wam/base/attrs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "wam/base/check.h"

namespace wam {
namespace {

std::string print(const AttrValue& value) {
  struct Visitor {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    // Always with a point or exponent, so that the text form keeps the type.
    std::string operator()(double v) const {
      std::string text = fmt::format("{}", v);
      return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
    std::string operator()(const std::string& v) const { return fmt::format("\"{}\"", v); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return fmt::format("[{}]", fmt::join(v, ","));
    }
    std::string operator()(const std::vector<double>& v) const {
      std::string text;
      for (const double x : v) text += (text.empty() ? "" : ",") + (*this)(x);
      return "[" + text + "]";
    }
  };
  return std::visit(Visitor{}, value);
}

}  // namespace

Attrs::Attrs(std::initializer_list<std::pair<std::string_view, AttrValue>> items) {
  for (const auto& [key, value] : items) set(key, value);
}

void Attrs::set(std::string_view key, AttrValue value) {
  auto place = std::ranges::lower_bound(items_, key, {}, [](const auto& item) -> std::string_view {
    return item.first;
  });
  if (place != items_.end() && place->first == key) {
    place->second = std::move(value);
  } else {
    items_.insert(place, {std::string(key), std::move(value)});
  }
}

const AttrValue* Attrs::find(std::string_view key) const {
  for (const auto& [name, value] : items_) {
    if (name == key) return &value;
  }
  return nullptr;
}

template <typename T>
const T& Attrs::get(std::string_view key) const {
  const AttrValue* value = find(key);
  WAM_CHECK(value != nullptr) << "attribute '" << key << "' is missing in " << to_string();
  const T* typed = std::get_if<T>(value);
  WAM_CHECK(typed != nullptr) << "attribute '" << key << "' has another type in " << to_string();
  return *typed;
}

bool Attrs::flag(std::string_view key, bool fallback) const {
  return has(key) ? get<bool>(key) : fallback;
}
int64_t Attrs::integer(std::string_view key) const { return get<int64_t>(key); }
int64_t Attrs::integer(std::string_view key, int64_t fallback) const {
  return has(key) ? get<int64_t>(key) : fallback;
}
double Attrs::real(std::string_view key) const { return get<double>(key); }
double Attrs::real(std::string_view key, double fallback) const {
  return has(key) ? get<double>(key) : fallback;
}
std::string Attrs::text(std::string_view key, std::string_view fallback) const {
  return has(key) ? get<std::string>(key) : std::string(fallback);
}
const std::string& Attrs::text(std::string_view key) const { return get<std::string>(key); }
const std::vector<int64_t>& Attrs::integers(std::string_view key) const {
  return get<std::vector<int64_t>>(key);
}
std::vector<int64_t> Attrs::integers_or_empty(std::string_view key) const {
  return has(key) ? get<std::vector<int64_t>>(key) : std::vector<int64_t>{};
}

std::string Attrs::to_string() const {
  if (items_.empty()) return "";
  std::string text;
  for (const auto& [key, value] : items_) {
    text += (text.empty() ? "" : ", ") + key + "=" + print(value);
  }
  return "{" + text + "}";
}

uint64_t Attrs::hash() const { return std::hash<std::string>{}(to_string()); }

}  // namespace wam
