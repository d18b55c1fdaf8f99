#include "wam/tensor/safetensors_index.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "wam/base/error.h"
#include "wam/base/quote.h"

namespace wam {
namespace {

using Json = nlohmann::json;

// A full-size checkpoint's index is below 1 MB.
constexpr size_t kMaxIndexBytes = 100'000'000;
// The index, a map in it, a value: deeper nesting is not this format.
constexpr int kMaxDepth = 3;

[[noreturn]] void fail(const std::string& where, const std::string& what,
                       const std::string& got = "", const std::string& expected = "") {
  throw DataError({.where = where,
                   .what = what,
                   .got = got,
                   .expected = expected,
                   .remedy = "Fetch the index again or write it anew."});
}

Json parse(std::string_view text, const std::string& where) {
  std::array<std::set<std::string>, kMaxDepth + 2> keys;  // by depth
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) fail(where, "JSON nested too deep");
    if (event == Json::parse_event_t::object_start) keys[static_cast<size_t>(depth) + 1].clear();
    if (event != Json::parse_event_t::key) return true;
    const auto& key = value.get_ref<const std::string&>();
    if (!keys[static_cast<size_t>(depth)].insert(key).second)
      fail(where, "key given twice", quote(key));
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::parse_error& error) {
    fail(where, "not valid JSON at byte " + std::to_string(error.byte));
  }
}

// A name that stays in the index's folder.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() < 256 &&
         name.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
}

}  // namespace

SafetensorsIndex parse_safetensors_index(const MappedFile& index) {
  const std::string where = index.path().string();
  if (index.size() > kMaxIndexBytes)
    fail(where, "index too long", std::to_string(index.size()) + " bytes");
  const Json json = parse(index.text(), where);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    fail(where, "no weight_map", "", "{\"weight_map\": {tensor: file name}}");
  }
  SafetensorsIndex result;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    if (!file.is_string() || !is_plain_file_name(file.get_ref<const std::string&>())) {
      fail(where + ": weight_map[" + quote(tensor) + "]", "not a file name",
           quote(file.is_string() ? file.get<std::string>() : file.dump()),
           "a name of a file beside the index");
    }
    result.weight_map[tensor] = file;
  }
  if (result.weight_map.empty()) fail(where, "weight_map is empty");
  const Json metadata = json.value("metadata", Json::object());
  if (!metadata.is_object()) fail(where, "metadata is not an object");
  for (const auto& [key, value] : metadata.items()) {
    result.metadata[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return result;
}

std::string make_safetensors_index(const SafetensorsIndex& index, int64_t total_size_bytes) {
  nlohmann::ordered_json json;
  json["metadata"] = index.metadata;
  json["metadata"]["total_size"] = total_size_bytes;
  json["weight_map"] = Json(index.weight_map);
  return json.dump(2) + "\n";
}

}  // namespace wam
