#include "wam/data/parquet_reader.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/file_descriptor.h"
#include "wam/base/files.h"
#include "wam/data/coded_error.h"
#include "wam/data/parquet_convert.h"

namespace wam::data {
namespace {

// Decompressed bytes one read may ask for; a file that claims more is taken to be damaged.
constexpr int64_t kMaxReadBytes = int64_t{1} << 32;

[[noreturn]] void throw_damaged(const std::string& where, const std::string& what,
                                const std::string& got) {
  std::string reason = got;
  while (!reason.empty() && (reason.back() == '.' || reason.back() == '\n')) reason.pop_back();
  throw DataError({.where = where,
                   .what = what,
                   .got = reason,
                   .remedy = "Restore the file, or record or convert the episode again."});
}

// Parquet reports some faults as exceptions, others as a status; all become DataError, and so does
// memory that a lying file makes it ask for.
template <typename Function>
auto guard(const std::string& where, const std::string& what, Function&& function) {
  try {
    return function();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw_damaged(where, what, error.what());
  }
}

void check_status(const arrow::Status& status, const std::string& where, const std::string& what) {
  if (!status.ok()) throw_damaged(where, what, status.message());
}

// Writers put the footer last: without it nothing of the file can be read.
void check_ends(const std::filesystem::path& path, int fd) {
  constexpr std::string_view kMagic = "PAR1";
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return;  // Arrow says what is wrong
  const off_t size = status.st_size;
  const auto at = [&](off_t offset) {
    char bytes[4] = {};
    return ::pread(fd, bytes, sizeof(bytes), offset) == 4 && std::string_view(bytes, 4) == kMagic;
  };
  if (size == 0) {
    throw CodedError("table-empty", {.where = path.string(),
                                     .what = "parquet file is empty",
                                     .got = "0 bytes",
                                     .remedy = "Restore the file, or leave the episode out."});
  }
  if (size < 8 || !at(0) || at(size - 4)) return;
  throw CodedError("table-footer",
                   {.where = path.string(),
                    .what = "parquet file has no footer: it was cut short, or its writer was never "
                            "closed",
                    .got = std::to_string(size) + " bytes",
                    .remedy = "Restore the file, or leave the episode out; a recording must be "
                              "finalised."});
}

void collect_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.is_leaf()) leaves.push_back(field.column_index);
  for (const parquet::arrow::SchemaField& child : field.children) collect_leaves(child, leaves);
}

// Arrow 24 replaced the status-returning call by one that returns a result.
template <typename Reader>
arrow::Result<std::shared_ptr<arrow::Table>> read_row_groups(Reader& reader,
                                                             const std::vector<int>& groups,
                                                             const std::vector<int>& leaves) {
  if constexpr (requires { reader.ReadRowGroups(groups, leaves); }) {
    return reader.ReadRowGroups(groups, leaves);
  } else {
    std::shared_ptr<arrow::Table> table;
    ARROW_RETURN_NOT_OK(reader.ReadRowGroups(groups, leaves, &table));
    return table;
  }
}

// A column of a table that was read from whole row groups, cut to the rows asked for.
struct ColumnSlice {
  std::shared_ptr<arrow::ChunkedArray> values;
  ColumnPlace place;
};

}  // namespace

struct ParquetImageColumn::Impl {
  struct Chunk {
    int64_t first_row = 0;
    std::shared_ptr<arrow::BinaryArray> bytes;
    std::shared_ptr<arrow::StringArray> path;
  };
  std::vector<Chunk> chunks;
  int64_t num_rows = 0, size_bytes = 0;

  // The chunk and the row within it.
  std::pair<const Chunk*, int64_t> locate(int64_t row) const {
    WAM_CHECK(row >= 0 && row < num_rows) << "row " << row << " of " << num_rows;
    const auto next = std::upper_bound(chunks.begin(), chunks.end(), row,
                                       [](int64_t r, const Chunk& c) { return r < c.first_row; });
    return {&*(next - 1), row - (next - 1)->first_row};
  }
};

int64_t ParquetImageColumn::num_rows() const { return impl_ == nullptr ? 0 : impl_->num_rows; }
int64_t ParquetImageColumn::size_bytes() const { return impl_ == nullptr ? 0 : impl_->size_bytes; }

bool ParquetImageColumn::has_bytes(int64_t row) const {
  const auto [chunk, i] = impl_->locate(row);
  return chunk->bytes->IsValid(i);
}

std::span<const std::byte> ParquetImageColumn::bytes(int64_t row) const {
  const auto [chunk, i] = impl_->locate(row);
  if (chunk->bytes->IsNull(i)) return {};
  const std::string_view view = chunk->bytes->GetView(i);
  return {reinterpret_cast<const std::byte*>(view.data()), view.size()};
}

std::string_view ParquetImageColumn::path(int64_t row) const {
  const auto [chunk, i] = impl_->locate(row);
  return chunk->path->IsNull(i) ? std::string_view() : chunk->path->GetView(i);
}

struct ParquetReader::Impl {
  std::string where;
  std::unique_ptr<parquet::arrow::FileReader> reader;
  std::vector<ParquetColumnInfo> columns;
  std::map<std::string, int, std::less<>> positions;  // name -> place in columns
  std::vector<int64_t> starts;                        // first row of each group, then num_rows
  std::map<std::string, std::string> metadata;

  void open(const std::filesystem::path& path);
  void read_schema();
  void read_row_groups();
  std::vector<int> leaves(int column) const;
  void check_size(const std::vector<int>& groups, const std::vector<int>& leaves,
                  const std::string& place) const;
  ColumnSlice read(std::string_view name, int64_t begin, int64_t count) const;
  ColumnSlice read_rows(const std::string& place, int column, int64_t begin, int64_t count) const;
  const ParquetColumnInfo& require(std::string_view name, ParquetKind kind,
                                   const std::string& expected) const;
};

void ParquetReader::Impl::open(const std::filesystem::path& path) {
  where = path.string();
  const std::string what = "not a readable parquet file";
  guard(where, what, [&] {
    FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) throw_io_error(path, "cannot open the parquet file", errno);
    check_ends(path, fd.get());
    auto file = arrow::io::ReadableFile::Open(fd.get(), arrow::system_memory_pool());
    check_status(file.status(), where, "cannot open the parquet file");
    fd.release();  // the file owns it now
    parquet::arrow::FileReaderBuilder builder;
    // Pages that carry a checksum are checked against it.
    parquet::ReaderProperties file_properties(arrow::system_memory_pool());
    file_properties.set_page_checksum_verification(true);
    check_status(builder.Open(*file, file_properties), where, what);
    parquet::ArrowReaderProperties properties(/*use_threads=*/false);
    // Off: it would read ahead on Arrow's own threads.
    properties.set_pre_buffer(false);
    // The system's allocator, so that memory read by the loader is given back and counted.
    check_status(
        builder.memory_pool(arrow::system_memory_pool())->properties(properties)->Build(&reader),
        where, what);
    read_schema();
    read_row_groups();
  });
}

void ParquetReader::Impl::read_schema() {
  std::shared_ptr<arrow::Schema> schema;
  check_status(reader->GetSchema(&schema), where, "parquet schema cannot be read");
  for (const auto& field : schema->fields()) {
    const int position = static_cast<int>(columns.size());
    columns.push_back(describe_column(field->name(), *field->type()));
    if (!positions.emplace(field->name(), position).second) {
      throw_damaged(where, "two columns of one name", field->name());
    }
  }
  const auto pairs = reader->parquet_reader()->metadata()->key_value_metadata();
  if (pairs == nullptr) return;
  for (int64_t i = 0; i < pairs->size(); ++i) metadata[pairs->key(i)] = pairs->value(i);
}

void ParquetReader::Impl::read_row_groups() {
  const auto file = reader->parquet_reader()->metadata();
  starts = {0};
  for (int group = 0; group < file->num_row_groups(); ++group) {
    const int64_t rows = file->RowGroup(group)->num_rows();
    if (rows < 0 || rows > file->num_rows()) {
      throw_damaged(where, "row group of impossible length", std::to_string(rows));
    }
    starts.push_back(starts.back() + rows);
  }
  if (starts.back() != file->num_rows()) {
    throw_damaged(
        where, "row groups do not add up to the file's rows",
        std::to_string(starts.back()) + " instead of " + std::to_string(file->num_rows()));
  }
}

std::vector<int> ParquetReader::Impl::leaves(int column) const {
  std::vector<int> leaves;
  collect_leaves(reader->manifest().schema_fields.at(static_cast<size_t>(column)), leaves);
  return leaves;
}

void ParquetReader::Impl::check_size(const std::vector<int>& groups, const std::vector<int>& leaves,
                                     const std::string& place) const {
  int64_t bytes = 0;
  const auto file = reader->parquet_reader()->metadata();
  for (const int group : groups) {
    const auto row_group = file->RowGroup(group);
    for (const int leaf : leaves) {
      const auto chunk = row_group->ColumnChunk(leaf);
      // Run-length coding may claim many values in few bytes: at most 8 bytes a value are made.
      const int64_t size = std::max<int64_t>(chunk->total_uncompressed_size(), 0);
      const int64_t values = std::clamp<int64_t>(chunk->num_values(), 0, kMaxReadBytes);
      bytes += std::min(size, kMaxReadBytes) + values * 8;
      if (bytes <= kMaxReadBytes) continue;
      throw_damaged(place, "column claims too much for one read",
                    "more than " + std::to_string(kMaxReadBytes) + " bytes");
    }
  }
}

ColumnSlice ParquetReader::Impl::read(std::string_view name, int64_t begin, int64_t count) const {
  const std::string place = where + ": column " + std::string(name);
  WAM_CHECK(begin >= 0 && count >= 0 && begin + count <= starts.back())
      << place << ": rows " << begin << "+" << count << " of " << starts.back();
  return guard(place, "column cannot be read",
               [&] { return read_rows(place, positions.find(name)->second, begin, count); });
}

ColumnSlice ParquetReader::Impl::read_rows(const std::string& place, int column, int64_t begin,
                                           int64_t count) const {
  std::vector<int> groups;
  int64_t first_row = -1;
  for (size_t group = 0; group + 1 < starts.size(); ++group) {
    if (starts[group] >= begin + count || starts[group + 1] <= begin) continue;
    if (first_row < 0) first_row = starts[group];
    groups.push_back(static_cast<int>(group));
  }
  const std::vector<int> columns_to_read = leaves(column);
  check_size(groups, columns_to_read, place);
  const auto result = wam::data::read_row_groups(*reader, groups, columns_to_read);
  check_status(result.status(), place, "column cannot be read");
  const std::shared_ptr<arrow::Table>& table = *result;
  const int64_t skip = first_row < 0 ? 0 : begin - first_row;
  if (table->num_columns() != 1 || table->num_rows() < skip + count) {
    throw_damaged(place, "fewer rows than the footer says", std::to_string(table->num_rows()));
  }
  return {table->column(0)->Slice(skip, count), {.where = place, .first_row = begin}};
}

const ParquetColumnInfo& ParquetReader::Impl::require(std::string_view name, ParquetKind kind,
                                                      const std::string& expected) const {
  const auto found = positions.find(name);
  if (found == positions.end()) {
    throw DataError({.where = where,
                     .what = "column '" + std::string(name) + "' is missing",
                     .expected = expected,
                     .remedy = "Compare the file's columns with meta/info.json."});
  }
  const ParquetColumnInfo& info = columns[static_cast<size_t>(found->second)];
  if (info.kind == kind) return info;
  throw DataError({.where = where + ": column " + info.name,
                   .what = "column of the wrong type",
                   .got = info.type,
                   .expected = expected,
                   .remedy = "Convert the column, or name another in the config."});
}

ParquetReader::ParquetReader(const std::filesystem::path& path) : impl_(std::make_unique<Impl>()) {
  impl_->open(path);
}
ParquetReader::~ParquetReader() = default;
ParquetReader::ParquetReader(ParquetReader&&) noexcept = default;
ParquetReader& ParquetReader::operator=(ParquetReader&&) noexcept = default;

int64_t ParquetReader::num_rows() const { return impl_->starts.back(); }
int ParquetReader::num_row_groups() const { return static_cast<int>(impl_->starts.size()) - 1; }
int64_t ParquetReader::row_group_start(int group) const {
  return impl_->starts.at(static_cast<size_t>(group));
}
const std::vector<ParquetColumnInfo>& ParquetReader::columns() const { return impl_->columns; }
const std::map<std::string, std::string>& ParquetReader::metadata() const {
  return impl_->metadata;
}

const ParquetColumnInfo* ParquetReader::find_column(std::string_view name) const {
  const auto found = impl_->positions.find(name);
  return found == impl_->positions.end() ? nullptr
                                         : &impl_->columns[static_cast<size_t>(found->second)];
}

HostTensor ParquetReader::read_numbers(std::string_view column, int64_t begin,
                                       int64_t count) const {
  impl_->require(column, ParquetKind::kNumber, "numbers or lists of numbers");
  const ColumnSlice slice = impl_->read(column, begin, count);
  return convert_numbers(*slice.values, slice.place);
}

HostTensor ParquetReader::read_numbers(std::string_view column) const {
  return read_numbers(column, 0, num_rows());
}

std::vector<std::string> ParquetReader::read_text(std::string_view column, int64_t begin,
                                                  int64_t count) const {
  impl_->require(column, ParquetKind::kText, "strings");
  const ColumnSlice slice = impl_->read(column, begin, count);
  return convert_text(*slice.values, slice.place);
}

std::vector<std::string> ParquetReader::read_text(std::string_view column) const {
  return read_text(column, 0, num_rows());
}

std::vector<std::vector<std::string>> ParquetReader::read_text_list(std::string_view column) const {
  impl_->require(column, ParquetKind::kTextList, "lists of strings");
  const ColumnSlice slice = impl_->read(column, 0, num_rows());
  return convert_text_list(*slice.values, slice.place);
}

ParquetImageColumn ParquetReader::read_images(std::string_view column, int64_t begin,
                                              int64_t count) const {
  impl_->require(column, ParquetKind::kImage, "struct<bytes: binary, path: string>");
  const ColumnSlice slice = impl_->read(column, begin, count);
  auto images = std::make_shared<ParquetImageColumn::Impl>();
  for (const auto& chunk : slice.values->chunks()) {
    if (chunk->length() == 0) continue;
    const auto& pictures = static_cast<const arrow::StructArray&>(*chunk);
    // Null structs make null children, which has_bytes() and path() report.
    auto bytes = pictures.GetFieldByName("bytes");
    auto path = pictures.GetFieldByName("path");
    images->chunks.push_back({.first_row = images->num_rows,
                              .bytes = std::static_pointer_cast<arrow::BinaryArray>(bytes),
                              .path = std::static_pointer_cast<arrow::StringArray>(path)});
    images->num_rows += chunk->length();
    images->size_bytes += images->chunks.back().bytes->total_values_length();
  }
  ParquetImageColumn result;
  result.impl_ = std::move(images);
  return result;
}

}  // namespace wam::data
