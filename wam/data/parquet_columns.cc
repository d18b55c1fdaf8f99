#include "wam/data/parquet_columns.h"

#include <algorithm>

namespace wam::data {
namespace {

DType stored_type(const std::string& value_type) {
  if (value_type == "float") return DType::kF32;
  if (value_type == "double" || value_type == "halffloat") return DType::kF64;
  if (value_type == "int32") return DType::kI32;
  if (value_type == "uint8") return DType::kU8;
  if (value_type == "bool") return DType::kBool;
  return DType::kI64;
}

HostTensor shaped(HostTensor numbers, const ParquetColumnInfo& column,
                  std::span<const Feature> features) {
  const int64_t rows = numbers.shape()[0], width = numbers.shape()[1];
  if (column.list_depth == 0) return numbers.reshaped({rows});
  const auto feature = std::find_if(features.begin(), features.end(), [&](const Feature& f) {
    return f.key == column.name && f.width() == width &&
           static_cast<int>(f.shape.size()) == column.list_depth;
  });
  if (feature == features.end() || column.list_depth == 1) return numbers;
  if (column.list_depth == 2) return numbers.reshaped({rows, feature->shape[0], feature->shape[1]});
  if (column.list_depth == 3) {
    return numbers.reshaped({rows, feature->shape[0], feature->shape[1], feature->shape[2]});
  }
  return numbers;
}

ParquetImages stored_images(const ParquetImageColumn& column) {
  ParquetImages images;
  for (int64_t row = 0; row < column.num_rows(); ++row) {
    const auto bytes = column.bytes(row);
    images.push_back({.has_bytes = column.has_bytes(row),
                      .bytes = {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                      .path = std::string(column.path(row))});
  }
  return images;
}

}  // namespace

std::vector<ParquetColumnData> read_stored_columns(const ParquetReader& reader, int64_t begin,
                                                   int64_t count, std::span<const Feature> features,
                                                   std::vector<std::string>* left_out) {
  std::vector<ParquetColumnData> columns;
  for (const ParquetColumnInfo& column : reader.columns()) {
    switch (column.kind) {
      case ParquetKind::kNumber: {
        const HostTensor numbers = reader.read_numbers(column.name, begin, count);
        columns.push_back(
            {column.name, shaped(numbers.to(stored_type(column.value_type)), column, features)});
        break;
      }
      case ParquetKind::kText:
        columns.push_back({column.name, reader.read_text(column.name, begin, count)});
        break;
      case ParquetKind::kTextList: {
        ParquetTextList lists = reader.read_text_list(column.name);
        columns.push_back(
            {column.name, ParquetTextList(lists.begin() + begin, lists.begin() + begin + count)});
        break;
      }
      case ParquetKind::kImage:
        columns.push_back(
            {column.name, stored_images(reader.read_images(column.name, begin, count))});
        break;
      case ParquetKind::kOther:
        if (left_out != nullptr) left_out->push_back(column.name);
        break;
    }
  }
  return columns;
}

}  // namespace wam::data
