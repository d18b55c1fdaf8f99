// Reads columns of a parquet file as plain numbers, text and encoded pictures. Arrow stays inside
// the .cc files. Files are untrusted: types, nulls, list lengths and sizes are checked, and every
// fault is a DataError naming file, column and row. Single-threaded; one thread per object.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wam/tensor/host_tensor.h"

namespace wam::data {

enum class ParquetKind {
  kNumber,    // integer, floating or bool; scalar or lists of any depth
  kText,      // string
  kTextList,  // list of strings
  kImage,     // struct<bytes: binary, path: string>
  kOther,     // anything else; cannot be read
};

struct ParquetColumnInfo {
  std::string name;
  ParquetKind kind = ParquetKind::kOther;
  std::string type;        // Arrow's text: "fixed_size_list<element: float>[7]"
  std::string value_type;  // innermost: "float", "double", "int64", "bool", "string"
  int list_depth = 0;      // 0: scalar
};

// Encoded pictures of consecutive rows, kept as read. Copies share the memory.
class ParquetImageColumn {
 public:
  int64_t num_rows() const;
  bool has_bytes(int64_t row) const;                    // false: see path()
  std::span<const std::byte> bytes(int64_t row) const;  // valid as long as the column lives
  std::string_view path(int64_t row) const;             // may be empty
  int64_t size_bytes() const;                           // memory held

 private:
  friend class ParquetReader;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

class ParquetReader {
 public:
  // Reads the footer. Throws DataError: absent, empty, cut short, not parquet, repeated columns.
  explicit ParquetReader(const std::filesystem::path& path);
  ~ParquetReader();
  ParquetReader(ParquetReader&&) noexcept;
  ParquetReader& operator=(ParquetReader&&) noexcept;

  int64_t num_rows() const;
  int num_row_groups() const;
  // First row of group g; row_group_start(num_row_groups()) is num_rows().
  int64_t row_group_start(int group) const;
  const std::vector<ParquetColumnInfo>& columns() const;
  const ParquetColumnInfo* find_column(std::string_view name) const;  // null if there is none
  // Key-value pairs of the footer.
  const std::map<std::string, std::string>& metadata() const;

  // Rows [begin, begin + count) of a kNumber column -> [count, width] f64; width 1 for scalars,
  // the product of the list lengths else. Integers beyond 2^53 are rounded. Throws on nulls and on
  // lists of different lengths.
  HostTensor read_numbers(std::string_view column, int64_t begin, int64_t count) const;
  HostTensor read_numbers(std::string_view column) const;
  // A null is an error in read_numbers and read_text_list, and the empty string in read_text.
  std::vector<std::string> read_text(std::string_view column, int64_t begin, int64_t count) const;
  std::vector<std::string> read_text(std::string_view column) const;
  std::vector<std::vector<std::string>> read_text_list(std::string_view column) const;
  ParquetImageColumn read_images(std::string_view column, int64_t begin, int64_t count) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wam::data
