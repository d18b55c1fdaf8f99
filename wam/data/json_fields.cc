#include "wam/data/json_fields.h"

#include <cmath>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/quote.h"

namespace wam::data {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what, const Json& got,
                       const std::string& expected) {
  throw DataError({.where = where,
                   .what = what,
                   .got = quote(got.dump(-1, ' ', true, Json::error_handler_t::replace)),
                   .expected = expected,
                   .remedy = "Correct the file."});
}

std::string field(const char* key) { return "field '" + std::string(key) + "'"; }

const Json* find(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

int64_t to_int(const Json& value, const std::string& where, const std::string& what) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) {
    fail(where, what, value, "an integer below 2^63");
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  const double number = value.is_number_float() ? value.get<double>() : std::nan("");
  // 2^53: above it a float does not hold every integer.
  if (number != std::trunc(number) || std::abs(number) > 0x1p53) {
    fail(where, what, value, "an integer");
  }
  return static_cast<int64_t>(number);
}

void append_numbers(const Json& value, const std::string& where, std::vector<double>& out) {
  if (value.is_array()) {
    for (const Json& element : value) append_numbers(element, where, out);
  } else if (value.is_boolean()) {
    out.push_back(value.get<bool>() ? 1 : 0);
  } else if (value.is_number()) {
    out.push_back(value.get<double>());
  } else {
    fail(where, "a statistic is not a number", value, "numbers");
  }
}

}  // namespace

Json parse_json_object(std::string_view text, const std::string& where) {
  Json value;
  try {
    value = Json::parse(text);
  } catch (const Json::exception& error) {
    throw DataError({.where = where,
                     .what = "not valid JSON",
                     .got = quote(error.what(), 200),
                     .remedy = "Correct or restore the file."});
  }
  if (!value.is_object()) fail(where, "not a JSON object", value, "{...}");
  return value;
}

Json read_json_object(const std::filesystem::path& path) {
  return parse_json_object(read_text_file(path, kMaxJsonBytes), path.string());
}

const Json& json_member(const Json& object, const char* key, const std::string& where) {
  const Json* value = find(object, key);
  if (value != nullptr) return *value;
  throw DataError({.where = where,
                   .what = field(key) + " is missing",
                   .remedy = "Correct or restore the file."});
}

int64_t json_int(const Json& object, const char* key, const std::string& where) {
  return to_int(json_member(object, key, where), where, field(key));
}

int64_t json_int(const Json& object, const char* key, const std::string& where, int64_t fallback) {
  const Json* value = find(object, key);
  return value == nullptr ? fallback : to_int(*value, where, field(key));
}

double json_number(const Json& object, const char* key, const std::string& where) {
  const Json& value = json_member(object, key, where);
  if (!value.is_number()) fail(where, field(key), value, "a number");
  return value.get<double>();
}

std::string json_string(const Json& object, const char* key, const std::string& where) {
  const Json& value = json_member(object, key, where);
  if (!value.is_string()) fail(where, field(key), value, "a string");
  return value.get<std::string>();
}

std::string json_string(const Json& object, const char* key, const std::string& where,
                        const std::string& fallback) {
  return find(object, key) == nullptr ? fallback : json_string(object, key, where);
}

bool json_bool(const Json& object, const char* key, const std::string& where, bool fallback) {
  const Json* value = find(object, key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(where, field(key), *value, "true or false");
  return value->get<bool>();
}

std::vector<int64_t> json_ints(const Json& value, const std::string& where) {
  if (!value.is_array()) fail(where, "not a list", value, "a list of integers");
  std::vector<int64_t> numbers;
  for (const Json& element : value) numbers.push_back(to_int(element, where, "list element"));
  return numbers;
}

std::vector<std::string> json_strings(const Json& value, const std::string& where) {
  if (!value.is_array()) fail(where, "not a list", value, "a list of strings");
  std::vector<std::string> strings;
  for (const Json& element : value) {
    if (!element.is_string()) fail(where, "list element", element, "a string");
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

std::vector<double> json_flat_numbers(const Json& value, const std::string& where) {
  std::vector<double> numbers;
  append_numbers(value, where, numbers);
  return numbers;
}

}  // namespace wam::data
