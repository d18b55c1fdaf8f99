#include "wam/tensor/safetensors_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "wam/base/check.h"
#include "wam/base/quote.h"
#include "wam/tensor/mapped_tensor.h"

namespace wam {
namespace {

using Json = nlohmann::json;

constexpr const char* kDamaged = "The file is damaged or cut short: fetch it again.";
constexpr size_t kDataAlignment = 64;

struct DTypeName {
  DType dtype;
  std::string_view name;
};
constexpr std::array<DTypeName, 10> kDTypeNames = {{{DType::kF32, "F32"},
                                                    {DType::kBF16, "BF16"},
                                                    {DType::kF16, "F16"},
                                                    {DType::kF64, "F64"},
                                                    {DType::kI32, "I32"},
                                                    {DType::kI64, "I64"},
                                                    {DType::kU8, "U8"},
                                                    {DType::kBool, "BOOL"},
                                                    {DType::kI8, "I8"},
                                                    {DType::kI16, "I16"}}};

// What one tensor's object says, before it is checked.
struct RawEntry {
  std::string name, dtype;
  std::vector<uint64_t> shape, offsets;
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

// Builds the header while the JSON is read: nothing is kept but what the format allows, so that
// nesting and repeated keys cost nothing. A callback that returns false ends the parse; problem()
// then says why.
class HeaderBuilder : public nlohmann::json_sax<Json> {
 public:
  const std::string& problem() const { return problem_; }
  std::vector<RawEntry>& tensors() { return tensors_; }
  std::map<std::string, std::string>& metadata() { return metadata_; }

  bool null() override { return fail("null is not allowed"); }
  bool boolean(bool) override { return fail("true and false are not allowed"); }
  bool number_integer(number_integer_t) override { return fail("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return fail("a number that is no integer below 2^64");
  }
  bool binary(binary_t&) override { return fail("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape)
      return append(tensor().shape, value, Shape::kMaxDims, "dimensions");
    if (place_ == Place::kOffsets) return append(tensor().offsets, value, 2, "data_offsets");
    return fail("a number where none belongs");
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      if (!metadata_.emplace(key_, value).second)
        return fail("metadata key given twice: " + quote(key_));
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype") return fail("text where none belongs");
    tensor().dtype = value;
    return set_once(tensor().has_dtype);
  }

  bool start_object(size_t) override {
    switch (place_) {
      case Place::kOutside:
        place_ = Place::kTop;
        return true;
      case Place::kTop:
        break;
      default:
        return fail("an object where none belongs");
    }
    if (key_ == "__metadata__") {
      place_ = Place::kMetadata;
      return set_once(has_metadata_);
    }
    place_ = Place::kTensor;
    tensors_.push_back({.name = key_});
    return true;
  }

  bool key(string_t& value) override {
    key_ = value;
    if (place_ != Place::kTensor || key_ == "dtype" || key_ == "shape" || key_ == "data_offsets")
      return true;
    return fail("unknown key " + quote(key_));
  }

  bool end_object() override {
    if (place_ == Place::kTensor &&
        !(tensor().has_dtype && tensor().has_shape && tensor().has_offsets)) {
      return fail("one of dtype, shape and data_offsets is missing");
    }
    place_ = place_ == Place::kTop ? Place::kDone : Place::kTop;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::kTensor && key_ == "shape") {
      place_ = Place::kShape;
      return set_once(tensor().has_shape);
    }
    if (place_ == Place::kTensor && key_ == "data_offsets") {
      place_ = Place::kOffsets;
      return set_once(tensor().has_offsets);
    }
    return fail("a list where none belongs");
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && tensor().offsets.size() != 2)
      return fail("data_offsets needs two numbers");
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    if (problem_.empty()) problem_ = "not valid JSON at byte " + std::to_string(position);
    return false;
  }

 private:
  enum class Place { kOutside, kTop, kMetadata, kTensor, kShape, kOffsets, kDone };

  RawEntry& tensor() { return tensors_.back(); }

  bool fail(const std::string& problem) {
    problem_ = problem;
    if (place_ >= Place::kTensor && place_ <= Place::kOffsets) {
      problem_ = "tensor " + quote(tensor().name) + ": " + problem;
    }
    return false;
  }

  bool set_once(bool& flag) {
    if (flag) return fail("key given twice: " + quote(key_));
    return flag = true;
  }

  bool append(std::vector<uint64_t>& list, uint64_t value, size_t limit, const char* what) {
    if (list.size() == limit) return fail("more than " + std::to_string(limit) + " " + what);
    list.push_back(value);
    return true;
  }

  Place place_ = Place::kOutside;
  std::string key_, problem_;
  bool has_metadata_ = false;
  std::vector<RawEntry> tensors_;
  std::map<std::string, std::string> metadata_;
};

[[noreturn]] void fail(const std::string& where, const std::string& what,
                       const std::string& got = "", const std::string& expected = "") {
  throw DataError(
      {.where = where, .what = what, .got = got, .expected = expected, .remedy = kDamaged});
}

std::string to_text(std::span<const uint64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

DType checked_dtype(const RawEntry& raw, const std::string& where) {
  if (const auto dtype = parse_safetensors_dtype(raw.dtype)) return *dtype;
  throw DataError({.where = where + ": tensor " + quote(raw.name),
                   .what = "element type not supported",
                   .got = quote(raw.dtype),
                   .expected = "one of F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL",
                   .remedy = "Convert the file to one of these types."});
}

SafetensorsEntry checked_entry(const RawEntry& raw, int64_t data_bytes, const std::string& where) {
  const std::string place = where + ": tensor " + quote(raw.name);
  const DType dtype = checked_dtype(raw, where);
  std::vector<int64_t> dims;
  for (uint64_t dim : raw.shape) {
    if (dim > INT64_MAX)
      fail(place, "size too large", to_text(raw.shape), "a tensor below 2^63 bytes");
    dims.push_back(static_cast<int64_t>(dim));
  }
  const int64_t size = checked_size_bytes(dtype, dims);
  if (size < 0) fail(place, "size too large", to_text(raw.shape), "a tensor below 2^63 bytes");
  const uint64_t begin = raw.offsets[0], end = raw.offsets[1];
  if (begin > end || end > static_cast<uint64_t>(data_bytes)) {
    fail(place, "byte range outside the data", to_text(raw.offsets),
         "begin <= end <= " + std::to_string(data_bytes));
  }
  const SafetensorsEntry entry{.type = {dtype, Shape(dims)},
                               .begin = static_cast<int64_t>(begin),
                               .end = static_cast<int64_t>(end)};
  if (size != entry.end - entry.begin) {
    fail(place, "byte range does not fit the shape",
         std::to_string(entry.end - entry.begin) + " bytes",
         std::to_string(size) + " for " + entry.type.to_string());
  }
  return entry;
}

using EntryIterator = std::map<std::string, SafetensorsEntry>::const_iterator;

std::vector<EntryIterator> by_range(const std::map<std::string, SafetensorsEntry>& entries) {
  std::vector<EntryIterator> order;
  for (auto it = entries.begin(); it != entries.end(); ++it) order.push_back(it);
  std::stable_sort(order.begin(), order.end(), [](EntryIterator a, EntryIterator b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  return order;
}

std::string entry_text(const std::string& name, const SafetensorsEntry& entry) {
  const auto dims = entry.type.shape.dims();
  return Json(name).dump() + ":" +
         nlohmann::ordered_json{{"dtype", safetensors_name(entry.type.dtype)},
                                {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                                {"data_offsets", {entry.begin, entry.end}}}
             .dump();
}

// The ranges must follow each other from 0 to the end of the data.
void check_coverage(const SafetensorsHeader& header, int64_t data_bytes, const std::string& where) {
  int64_t covered = 0;
  for (EntryIterator it : by_range(header.entries)) {
    const std::string range =
        "[" + std::to_string(it->second.begin) + "," + std::to_string(it->second.end) + "]";
    const std::string expected = "a start at byte " + std::to_string(covered);
    const std::string place = where + ": tensor " + quote(it->first);
    if (it->second.begin < covered)
      fail(place, "byte range overlaps another tensor's", range, expected);
    if (it->second.begin > covered)
      fail(place, "byte range leaves a hole before it", range, expected);
    covered = it->second.end;
  }
  if (covered != data_bytes) {
    fail(where, "bytes that belong to no tensor", std::to_string(data_bytes) + " bytes of data",
         std::to_string(covered));
  }
}

uint64_t header_length(std::span<const std::byte> file, const std::string& where) {
  if (file.size() < kSafetensorsPrefixBytes) {
    fail(where, "too short for safetensors", std::to_string(file.size()) + " bytes", "8 or more");
  }
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  if (length > kMaxSafetensorsHeaderBytes) {
    fail(where, "header too long", std::to_string(length) + " bytes",
         "at most " + std::to_string(kMaxSafetensorsHeaderBytes));
  }
  if (length > file.size() - kSafetensorsPrefixBytes) {
    fail(where, "header past the end of the file", std::to_string(length) + " bytes",
         "at most " + std::to_string(file.size() - kSafetensorsPrefixBytes));
  }
  return length;
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  for (const DTypeName& entry : kDTypeNames) {
    if (entry.dtype == dtype) return entry.name;
  }
  WAM_CHECK(false) << "no safetensors name for " << name(dtype);
  return "";
}

std::optional<DType> parse_safetensors_dtype(std::string_view text) {
  for (const DTypeName& entry : kDTypeNames) {
    if (entry.name == text) return entry.dtype;
  }
  return std::nullopt;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& where) {
  const uint64_t length = header_length(file, where);
  const auto* text = reinterpret_cast<const char*>(file.data()) + kSafetensorsPrefixBytes;
  if (length == 0 || *text != '{')
    fail(where, "not a safetensors header", "", "JSON starting with '{'");
  HeaderBuilder builder;
  if (!Json::sax_parse(text, text + length, &builder)) fail(where + ": header", builder.problem());
  SafetensorsHeader header;
  header.data_offset = kSafetensorsPrefixBytes + static_cast<int64_t>(length);
  const int64_t data_bytes = static_cast<int64_t>(file.size()) - header.data_offset;
  for (const RawEntry& raw : builder.tensors()) {
    if (!header.entries.emplace(raw.name, checked_entry(raw, data_bytes, where)).second) {
      fail(where, "tensor name given twice", quote(raw.name));
    }
  }
  check_coverage(header, data_bytes, where);
  header.metadata = std::move(builder.metadata());
  return header;
}

std::string make_safetensors_header(const std::map<std::string, SafetensorsEntry>& entries,
                                    const std::map<std::string, std::string>& metadata) {
  // Composed by hand: an ordered JSON object looks every key up, which is quadratic.
  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + Json(metadata).dump() + ",";
  for (EntryIterator it : by_range(entries)) text += entry_text(it->first, it->second) + ",";
  if (text.back() == ',') text.pop_back();
  text += '}';
  const size_t used = kSafetensorsPrefixBytes + text.size();
  text.append((kDataAlignment - used % kDataAlignment) % kDataAlignment, ' ');
  const uint64_t length = text.size();
  std::string header(sizeof length, '\0');
  std::memcpy(header.data(), &length, sizeof length);
  return header + text;
}

}  // namespace wam
