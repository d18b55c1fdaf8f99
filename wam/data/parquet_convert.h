// Private to parquet_reader.cc: Arrow arrays to plain numbers and text, with checks.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "wam/data/parquet_reader.h"
#include "wam/tensor/host_tensor.h"

namespace wam::data {

// What to call a column in messages, and the file's row of the array's first element.
struct ColumnPlace {
  std::string where;  // "file.parquet: column action"
  int64_t first_row = 0;
};

ParquetColumnInfo describe_column(const std::string& name, const arrow::DataType& type);

// Chunks in order -> [rows, width] f64; an empty list of chunks gives [0, 1].
HostTensor convert_numbers(const arrow::ChunkedArray& column, const ColumnPlace& place);
std::vector<std::string> convert_text(const arrow::ChunkedArray& column, const ColumnPlace& place);
std::vector<std::vector<std::string>> convert_text_list(const arrow::ChunkedArray& column,
                                                        const ColumnPlace& place);

}  // namespace wam::data
