// The header of a safetensors file: names, types and byte ranges, as JSON after its length in eight
// little-endian bytes. Format: huggingface/safetensors, README "Format".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "wam/tensor/shape.h"

namespace wam {

struct SafetensorsEntry {
  TensorType type;
  int64_t begin = 0, end = 0;  // bytes from the start of the data
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
  int64_t data_offset = 0;  // bytes from the start of the file
};

inline constexpr int64_t kSafetensorsPrefixBytes = 8;
// The public implementation's limit.
inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

// "F32", "BF16", ...: the format's names of element types.
std::string_view safetensors_name(DType dtype);
std::optional<DType> parse_safetensors_dtype(std::string_view text);

// Reads and checks the header of a file given whole: length, JSON, unique names, known types, sizes
// that agree with byte ranges, and ranges that cover the data exactly, without overlap or hole.
// Throws DataError with `where` (the file's name) otherwise.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& where);

// The bytes in front of the data: length and JSON, padded with spaces to a multiple of 64 so that
// the data is aligned in a mapping. Entries are written in order of their ranges.
std::string make_safetensors_header(const std::map<std::string, SafetensorsEntry>& entries,
                                    const std::map<std::string, std::string>& metadata);

}  // namespace wam
