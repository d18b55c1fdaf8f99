#include "wam/data/parquet_convert.h"

#include <arrow/api.h>

#include <algorithm>

#include "wam/base/error.h"

namespace wam::data {
namespace {

// 1 GiB of f64: far above any episode, and what a lying file may cost at most.
constexpr int64_t kMaxElements = int64_t{1} << 27;

bool is_list(const arrow::DataType& type) {
  return type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST ||
         type.id() == arrow::Type::FIXED_SIZE_LIST;
}

bool is_text(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING;
}

bool is_number(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || arrow::is_floating(type.id()) ||
         type.id() == arrow::Type::BOOL;
}

bool is_image(const arrow::DataType& type) {
  if (type.id() != arrow::Type::STRUCT) return false;
  const auto& fields = static_cast<const arrow::StructType&>(type);
  const auto bytes = fields.GetFieldByName("bytes");
  const auto path = fields.GetFieldByName("path");
  return bytes != nullptr && path != nullptr && bytes->type()->id() == arrow::Type::BINARY &&
         path->type()->id() == arrow::Type::STRING;
}

[[noreturn]] void fail(const ColumnPlace& place, int64_t row, const std::string& what,
                       const std::string& got, const std::string& expected) {
  throw DataError({.where = place.where + ", row " + std::to_string(place.first_row + row),
                   .what = what,
                   .got = got,
                   .expected = expected,
                   .remedy = "Repair the file or leave the episode out."});
}

// First null of a slice; -1 if there is none.
int64_t find_null(const arrow::Array& array) {
  if (array.null_count() == 0) return -1;
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsNull(i)) return i;
  }
  return -1;
}

// One level of lists taken off: the values of all rows and how many each row has.
struct Unwrapped {
  std::shared_ptr<arrow::Array> values;
  int64_t length = 0;
};

template <typename ListArray>
Unwrapped unwrap_lists(const ListArray& lists, const ColumnPlace& place, int64_t values_per_row) {
  const int64_t first = lists.value_offset(0);
  const int64_t last = lists.value_offset(lists.length());
  const int64_t length = lists.value_length(0);
  for (int64_t i = 1; i < lists.length(); ++i) {
    if (lists.value_length(i) == length) continue;
    fail(place, i / values_per_row, "lists of different lengths in one column",
         std::to_string(lists.value_length(i)), std::to_string(length) + " as in the first row");
  }
  if (first < 0 || last < first || last > lists.values()->length()) {
    fail(place, 0, "damaged list offsets", std::to_string(last), "within the values");
  }
  return {lists.values()->Slice(first, last - first), length};
}

Unwrapped unwrap(const arrow::Array& array, const ColumnPlace& place, int64_t values_per_row) {
  if (const int64_t null = find_null(array); null >= 0) {
    fail(place, null / values_per_row, "null in a column of numbers", "null", "a list");
  }
  switch (array.type_id()) {
    case arrow::Type::LIST:
      return unwrap_lists(static_cast<const arrow::ListArray&>(array), place, values_per_row);
    case arrow::Type::LARGE_LIST:
      return unwrap_lists(static_cast<const arrow::LargeListArray&>(array), place, values_per_row);
    default:
      break;
  }
  const auto& lists = static_cast<const arrow::FixedSizeListArray&>(array);
  const int64_t length = lists.value_length();
  return {lists.values()->Slice(lists.value_offset(0), array.length() * length), length};
}

template <typename Array>
void copy_values(const arrow::Array& source, double* target) {
  const auto& typed = static_cast<const Array&>(source);
  for (int64_t i = 0; i < typed.length(); ++i) target[i] = static_cast<double>(typed.Value(i));
}

void copy_half(const arrow::Array& source, double* target) {
  const auto& typed = static_cast<const arrow::HalfFloatArray&>(source);
  for (int64_t i = 0; i < typed.length(); ++i) {
    target[i] = f16_to_float(static_cast<uint16_t>(typed.Value(i)));
  }
}

void copy_leaf(const arrow::Array& leaf, const ColumnPlace& place, double* target) {
  switch (leaf.type_id()) {
    case arrow::Type::FLOAT:
      return copy_values<arrow::FloatArray>(leaf, target);
    case arrow::Type::DOUBLE:
      return copy_values<arrow::DoubleArray>(leaf, target);
    case arrow::Type::HALF_FLOAT:
      return copy_half(leaf, target);
    case arrow::Type::BOOL:
      return copy_values<arrow::BooleanArray>(leaf, target);
    case arrow::Type::INT8:
      return copy_values<arrow::Int8Array>(leaf, target);
    case arrow::Type::INT16:
      return copy_values<arrow::Int16Array>(leaf, target);
    case arrow::Type::INT32:
      return copy_values<arrow::Int32Array>(leaf, target);
    case arrow::Type::INT64:
      return copy_values<arrow::Int64Array>(leaf, target);
    case arrow::Type::UINT8:
      return copy_values<arrow::UInt8Array>(leaf, target);
    case arrow::Type::UINT16:
      return copy_values<arrow::UInt16Array>(leaf, target);
    case arrow::Type::UINT32:
      return copy_values<arrow::UInt32Array>(leaf, target);
    case arrow::Type::UINT64:
      return copy_values<arrow::UInt64Array>(leaf, target);
    default:
      fail(place, 0, "column is not of numbers", leaf.type()->ToString(), "numbers");
  }
}

// One chunk with its lists taken off.
struct FlatChunk {
  std::shared_ptr<arrow::Array> leaf;
  int64_t num_rows = 0, width = 1;
  int64_t first_row = 0;  // within the column
};

FlatChunk flatten(const std::shared_ptr<arrow::Array>& chunk, const ColumnPlace& place) {
  FlatChunk flat{.leaf = chunk, .num_rows = chunk->length()};
  while (is_list(*flat.leaf->type())) {
    const Unwrapped inner = unwrap(*flat.leaf, place, flat.width);
    flat.leaf = inner.values;
    if (inner.length > kMaxElements / std::max<int64_t>(flat.width, 1)) {
      fail(place, 0, "lists too long", std::to_string(inner.length), "a robot's column");
    }
    flat.width *= inner.length;
    if (flat.width == 0)
      fail(place, 0, "empty list in a column of numbers", "0 values", "1 or more");
  }
  if (const int64_t null = find_null(*flat.leaf); null >= 0) {
    fail(place, null / flat.width, "null in a column of numbers", "null", "a number");
  }
  return flat;
}

std::vector<FlatChunk> flatten_chunks(const arrow::ChunkedArray& column, const ColumnPlace& place) {
  std::vector<FlatChunk> chunks;
  int64_t first_row = 0;
  for (const auto& chunk : column.chunks()) {
    if (chunk->length() == 0) continue;
    const ColumnPlace here{place.where, place.first_row + first_row};
    chunks.push_back(flatten(chunk, here));
    chunks.back().first_row = first_row;
    first_row += chunk->length();
    if (chunks.back().width == chunks.front().width) continue;
    fail(here, 0, "lists of different lengths in one column", std::to_string(chunks.back().width),
         std::to_string(chunks.front().width) + " as in the first row");
  }
  return chunks;
}

template <typename Array>
void append_text(const arrow::Array& chunk, std::vector<std::string>& out) {
  const auto& typed = static_cast<const Array&>(chunk);
  for (int64_t i = 0; i < typed.length(); ++i) {
    out.push_back(typed.IsNull(i) ? std::string() : typed.GetString(i));
  }
}

void append_text_chunk(const arrow::Array& chunk, std::vector<std::string>& out) {
  if (chunk.type_id() == arrow::Type::STRING) return append_text<arrow::StringArray>(chunk, out);
  append_text<arrow::LargeStringArray>(chunk, out);
}

}  // namespace

ParquetColumnInfo describe_column(const std::string& name, const arrow::DataType& type) {
  ParquetColumnInfo info{.name = name, .type = type.ToString()};
  const arrow::DataType* leaf = &type;
  while (is_list(*leaf)) {
    leaf = static_cast<const arrow::BaseListType&>(*leaf).value_type().get();
    ++info.list_depth;
  }
  info.value_type = leaf->ToString();
  if (is_number(*leaf)) info.kind = ParquetKind::kNumber;
  if (is_text(*leaf) && info.list_depth == 0) info.kind = ParquetKind::kText;
  if (is_text(*leaf) && info.list_depth == 1 && type.id() == arrow::Type::LIST) {
    info.kind = ParquetKind::kTextList;
  }
  if (is_image(*leaf) && info.list_depth == 0) info.kind = ParquetKind::kImage;
  return info;
}

HostTensor convert_numbers(const arrow::ChunkedArray& column, const ColumnPlace& place) {
  const std::vector<FlatChunk> chunks = flatten_chunks(column, place);
  const int64_t width = chunks.empty() ? 1 : chunks.front().width;
  if (column.length() > kMaxElements / width) {
    fail(place, 0, "column too large for one read", std::to_string(column.length()) + " rows",
         "at most " + std::to_string(kMaxElements / width));
  }
  HostTensor numbers(DType::kF64, {column.length(), width});
  double* target = numbers.as<double>().data();
  for (const FlatChunk& chunk : chunks) {
    copy_leaf(*chunk.leaf, place, target + chunk.first_row * width);
  }
  return numbers;
}

std::vector<std::string> convert_text(const arrow::ChunkedArray& column, const ColumnPlace& place) {
  if (!is_text(*column.type())) {
    fail(place, 0, "column is not text", column.type()->ToString(), "string");
  }
  std::vector<std::string> text;
  for (const auto& chunk : column.chunks()) append_text_chunk(*chunk, text);
  return text;
}

std::vector<std::vector<std::string>> convert_text_list(const arrow::ChunkedArray& column,
                                                        const ColumnPlace& place) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& chunk : column.chunks()) {
    if (const int64_t null = find_null(*chunk); null >= 0) {
      fail(place, static_cast<int64_t>(rows.size()) + null, "null", "null", "a list of strings");
    }
    const auto& lists = static_cast<const arrow::ListArray&>(*chunk);
    for (int64_t i = 0; i < lists.length(); ++i) {
      append_text_chunk(*lists.value_slice(i), rows.emplace_back());
    }
  }
  return rows;
}

}  // namespace wam::data
