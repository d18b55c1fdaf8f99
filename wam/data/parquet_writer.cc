#include "wam/data/parquet_writer.h"

#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <utility>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/files.h"

namespace wam::data {
namespace {

void check_arrow(const arrow::Status& status, const std::string& where, const std::string& what) {
  if (status.ok()) return;
  throw DataError({.where = where,
                   .what = what,
                   .got = status.message(),
                   .remedy = "Check free space and permissions of the folder."});
}

template <typename T>
T value_or_throw(arrow::Result<T> result, const std::string& where, const std::string& what) {
  check_arrow(result.status(), where, what);
  return std::move(result).ValueUnsafe();
}

// Arrow's view of an AtomicFile. Errors of the file pass through Arrow as a status, and the first
// one is kept so that it is thrown with its own text.
class AtomicStream : public arrow::io::OutputStream {
 public:
  explicit AtomicStream(const std::filesystem::path& path) : file_(path) {}
  arrow::Status Write(const void* data, int64_t size) override {
    try {
      file_.write(std::span(static_cast<const std::byte*>(data), static_cast<size_t>(size)));
    } catch (const Error& error) {
      failure_ = std::current_exception();
      return arrow::Status::IOError(error.what());
    }
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> Tell() const override { return file_.bytes_written(); }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  void commit() { file_.commit(); }
  void rethrow_failure() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  AtomicFile file_;
  std::exception_ptr failure_;
  bool closed_ = false;
};

std::shared_ptr<arrow::Array> finish(arrow::ArrayBuilder& builder, const std::string& column) {
  return value_or_throw(builder.Finish(), column, "cannot build the column");
}

template <typename Builder, typename T>
std::shared_ptr<arrow::Array> build_flat(const HostTensor& numbers, const std::string& column) {
  Builder builder;
  const std::span<const T> values = numbers.as<T>();
  check_arrow(builder.AppendValues(values.data(), static_cast<int64_t>(values.size())), column,
              "cannot build the column");
  return finish(builder, column);
}

std::shared_ptr<arrow::Array> flat_values(const HostTensor& numbers, const std::string& column) {
  switch (numbers.dtype()) {
    case DType::kF32:
      return build_flat<arrow::FloatBuilder, float>(numbers, column);
    case DType::kF64:
      return build_flat<arrow::DoubleBuilder, double>(numbers, column);
    case DType::kI32:
      return build_flat<arrow::Int32Builder, int32_t>(numbers, column);
    case DType::kI64:
      return build_flat<arrow::Int64Builder, int64_t>(numbers, column);
    case DType::kU8:
      return build_flat<arrow::UInt8Builder, uint8_t>(numbers, column);
    case DType::kBool:
      return build_flat<arrow::BooleanBuilder, uint8_t>(numbers, column);
    default:
      break;
  }
  WAM_CHECK(false) << "column " << column << " of " << numbers.type().to_string();
  return nullptr;
}

// [rows, n] -> fixed_size_list<n>; [rows, a, b] -> list<list>, as HF's Array2D stores it.
std::shared_ptr<arrow::Array> build_column(const HostTensor& numbers, const std::string& column) {
  const Shape& shape = numbers.shape();
  WAM_CHECK(shape.ndim() >= 1) << "column " << column << " is a scalar";
  std::shared_ptr<arrow::Array> array = flat_values(numbers, column);
  for (int dim = shape.ndim() - 1; dim >= 1; --dim) {
    WAM_CHECK(shape[dim] > 0) << "column " << column << " has an empty dimension";
    if (shape.ndim() == 2) {
      return value_or_throw(
          arrow::FixedSizeListArray::FromArrays(array, static_cast<int32_t>(shape[1])), column,
          "cannot build the column");
    }
    arrow::Int32Builder offsets;
    const int64_t count = array->length() / shape[dim];
    for (int64_t i = 0; i <= count; ++i) {
      check_arrow(offsets.Append(static_cast<int32_t>(i * shape[dim])), column,
                  "cannot build the column");
    }
    array = value_or_throw(arrow::ListArray::FromArrays(*finish(offsets, column), *array), column,
                           "cannot build the column");
  }
  return array;
}

std::shared_ptr<arrow::Array> build_column(const ParquetText& text, const std::string& column) {
  arrow::StringBuilder builder;
  check_arrow(builder.AppendValues(text), column, "cannot build the column");
  return finish(builder, column);
}

std::shared_ptr<arrow::Array> build_column(const ParquetTextList& lists,
                                           const std::string& column) {
  auto values = std::make_shared<arrow::StringBuilder>();
  arrow::ListBuilder builder(arrow::default_memory_pool(), values);
  for (const std::vector<std::string>& list : lists) {
    check_arrow(builder.Append(), column, "cannot build the column");
    check_arrow(values->AppendValues(list), column, "cannot build the column");
  }
  return finish(builder, column);
}

std::shared_ptr<arrow::Array> build_column(const ParquetImages& images, const std::string& column) {
  arrow::BinaryBuilder bytes;
  arrow::StringBuilder path;
  for (const EncodedImage& image : images) {
    check_arrow(image.has_bytes ? bytes.Append(image.bytes) : bytes.AppendNull(), column,
                "cannot build the column");
    check_arrow(path.Append(image.path), column, "cannot build the column");
  }
  return value_or_throw(arrow::StructArray::Make({finish(bytes, column), finish(path, column)},
                                                 std::vector<std::string>{"bytes", "path"}),
                        column, "cannot build the column");
}

std::shared_ptr<arrow::Table> build_table(const std::vector<ParquetColumnData>& columns,
                                          std::shared_ptr<const arrow::KeyValueMetadata> metadata) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<std::shared_ptr<arrow::Array>> arrays;
  for (const ParquetColumnData& column : columns) {
    arrays.push_back(std::visit(
        [&](const auto& values) { return build_column(values, column.name); }, column.values));
    WAM_CHECK(arrays.back()->length() == arrays.front()->length())
        << "column " << column.name << " has " << arrays.back()->length() << " rows, not "
        << arrays.front()->length();
    fields.push_back(arrow::field(column.name, arrays.back()->type()));
  }
  return arrow::Table::Make(arrow::schema(fields, std::move(metadata)), arrays);
}

arrow::Compression::type arrow_compression(ParquetWriterOptions::Compression compression) {
  switch (compression) {
    case ParquetWriterOptions::Compression::kNone:
      return arrow::Compression::UNCOMPRESSED;
    case ParquetWriterOptions::Compression::kSnappy:
      return arrow::Compression::SNAPPY;
    case ParquetWriterOptions::Compression::kZstd:
      return arrow::Compression::ZSTD;
  }
  return arrow::Compression::UNCOMPRESSED;
}

}  // namespace

struct ParquetWriter::Impl {
  std::string where;
  ParquetWriterOptions options;
  std::shared_ptr<AtomicStream> stream;
  std::unique_ptr<parquet::arrow::FileWriter> writer;
  bool finished = false;

  void open(const arrow::Schema& schema);
  void check(const arrow::Status& status, const std::string& what) const {
    stream->rethrow_failure();
    check_arrow(status, where, what);
  }
};

void ParquetWriter::Impl::open(const arrow::Schema& schema) {
  std::shared_ptr<parquet::WriterProperties> properties =
      parquet::WriterProperties::Builder()
          .compression(arrow_compression(options.compression))
          ->enable_page_checksum()
          ->build();
  // The Arrow schema in the footer keeps fixed_size_list what it is.
  std::shared_ptr<parquet::ArrowWriterProperties> arrow_properties =
      parquet::ArrowWriterProperties::Builder().store_schema()->build();
  auto result = parquet::arrow::FileWriter::Open(schema, arrow::default_memory_pool(), stream,
                                                 properties, arrow_properties);
  check(result.status(), "cannot start the parquet file");
  writer = std::move(result).ValueUnsafe();
}

ParquetWriter::ParquetWriter(const std::filesystem::path& path, const ParquetWriterOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->where = path.string();
  impl_->options = options;
  impl_->stream = std::make_shared<AtomicStream>(path);
}

ParquetWriter::~ParquetWriter() = default;

void ParquetWriter::write_row_group(const std::vector<ParquetColumnData>& columns) {
  WAM_CHECK(!impl_->finished && !columns.empty()) << impl_->where;
  auto metadata = std::make_shared<arrow::KeyValueMetadata>();
  for (const auto& [key, value] : impl_->options.metadata) metadata->Append(key, value);
  const std::shared_ptr<arrow::Table> table = build_table(columns, metadata);
  if (impl_->writer == nullptr) impl_->open(*table->schema());
  WAM_CHECK(impl_->writer->schema()->Equals(*table->schema(), false))
      << impl_->where << ": columns differ from the first row group's";
  impl_->check(impl_->writer->WriteTable(*table, std::max<int64_t>(1, table->num_rows())),
               "cannot write the parquet file");
}

void ParquetWriter::finish() {
  WAM_CHECK(!impl_->finished && impl_->writer != nullptr) << impl_->where;
  impl_->check(impl_->writer->Close(), "cannot finish the parquet file");
  impl_->stream->commit();
  impl_->finished = true;
}

void write_parquet(const std::filesystem::path& path, const std::vector<ParquetColumnData>& columns,
                   const ParquetWriterOptions& options) {
  ParquetWriter writer(path, options);
  writer.write_row_group(columns);
  writer.finish();
}

}  // namespace wam::data
