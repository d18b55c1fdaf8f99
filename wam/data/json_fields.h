// Private to the .cc files that read JSON: fields by name and type, with errors that say where.
// Numbers that are written as 20.0 count as integers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace wam::data {

using Json = nlohmann::json;

// Largest meta file of one JSON document.
inline constexpr size_t kMaxJsonBytes = size_t{256} << 20;

// Throws DataError: not JSON (with the byte), or not an object.
Json parse_json_object(std::string_view text, const std::string& where);
Json read_json_object(const std::filesystem::path& path);

// All throw DataError "[where] field ..., got, expected" when the field is absent or of another
// type. The ones with `fallback` give it when the field is absent or null.
const Json& json_member(const Json& object, const char* key, const std::string& where);
int64_t json_int(const Json& object, const char* key, const std::string& where);
int64_t json_int(const Json& object, const char* key, const std::string& where, int64_t fallback);
double json_number(const Json& object, const char* key, const std::string& where);
std::string json_string(const Json& object, const char* key, const std::string& where);
std::string json_string(const Json& object, const char* key, const std::string& where,
                        const std::string& fallback);
bool json_bool(const Json& object, const char* key, const std::string& where, bool fallback);
// A list of integers.
std::vector<int64_t> json_ints(const Json& value, const std::string& where);
// A list of strings; non-strings are an error.
std::vector<std::string> json_strings(const Json& value, const std::string& where);
// The numbers of a number or of nested lists, in order. Booleans count as 0 and 1, as in LeRobot's
// statistics of flags. NaN written as such is not JSON; null is an error.
std::vector<double> json_flat_numbers(const Json& value, const std::string& where);

}  // namespace wam::data
