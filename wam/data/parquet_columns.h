// Columns of a parquet file in the form in which ParquetWriter writes them: to copy tables.
#pragma once

#include <span>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/parquet_reader.h"
#include "wam/data/parquet_writer.h"

namespace wam::data {

// Rows [begin, begin + count) of all columns of numbers, texts and pictures, in their own types
// (integers of other widths become int64). Nested lists keep their shape where `features` tell it,
// and become plain lists elsewhere. Columns of other kinds are left out, and named in `left_out`
// unless it is null.
std::vector<ParquetColumnData> read_stored_columns(const ParquetReader& reader, int64_t begin,
                                                   int64_t count, std::span<const Feature> features,
                                                   std::vector<std::string>* left_out = nullptr);

}  // namespace wam::data
