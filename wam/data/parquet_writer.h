// Writes parquet files as LeRobot tools do: scalar and list columns of numbers, text, pictures as
// struct<bytes, path>. The file appears under its name in finish(), whole. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "wam/tensor/host_tensor.h"

namespace wam::data {

// HF's Image storage: encoded bytes, or null bytes and a path relative to the dataset's root.
struct EncodedImage {
  bool has_bytes = true;
  std::string bytes;  // PNG or JPEG, raw
  std::string path;
};

using ParquetNumbers = HostTensor;  // [rows] scalars, [rows, n] fixed lists, [rows, a, b...] nested
using ParquetText = std::vector<std::string>;
using ParquetTextList = std::vector<std::vector<std::string>>;
using ParquetImages = std::vector<EncodedImage>;

// One column of a row group. Numbers: f32, f64, i32, i64, u8, bool.
struct ParquetColumnData {
  std::string name;
  std::variant<ParquetNumbers, ParquetText, ParquetTextList, ParquetImages> values;
};

struct ParquetWriterOptions {
  enum class Compression { kNone, kSnappy, kZstd };
  Compression compression = Compression::kSnappy;
  std::map<std::string, std::string> metadata;  // key-value pairs of the file's footer
};

class ParquetWriter {
 public:
  explicit ParquetWriter(const std::filesystem::path& path,
                         const ParquetWriterOptions& options = {});
  ~ParquetWriter();  // without finish(): removes what was written
  ParquetWriter(const ParquetWriter&) = delete;
  ParquetWriter& operator=(const ParquetWriter&) = delete;

  // All columns have the same number of rows; names, order, types and list sizes are those of the
  // first call. One call is one row group. Throws DataError (disk full, unwritable folder).
  void write_row_group(const std::vector<ParquetColumnData>& columns);
  // Writes the footer, syncs to disk and renames. Must be called once.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A file of one row group.
void write_parquet(const std::filesystem::path& path, const std::vector<ParquetColumnData>& columns,
                   const ParquetWriterOptions& options = {});

}  // namespace wam::data
