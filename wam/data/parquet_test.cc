#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/philox.h"
#include "wam/data/parquet_reader.h"
#include "wam/data/parquet_writer.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

template <typename T>
HostTensor counting(DType dtype, Shape shape) {
  HostTensor tensor(dtype, shape);
  T value = 0;
  for (T& element : tensor.as<T>()) element = value++;
  return tensor;
}

std::vector<ParquetColumnData> sample_columns(int64_t rows) {
  ParquetText text;
  ParquetTextList lists;
  ParquetImages images;
  for (int64_t i = 0; i < rows; ++i) {
    text.push_back("row " + std::to_string(i));
    lists.push_back(std::vector<std::string>(static_cast<size_t>(i % 3), "t"));
    images.push_back(i % 2 == 0
                         ? EncodedImage{.bytes = std::string(7, static_cast<char>(i))}
                         : EncodedImage{.has_bytes = false, .path = "p" + std::to_string(i)});
  }
  return {{"state", counting<float>(DType::kF32, {rows, 3})},
          {"action", counting<double>(DType::kF64, {rows, 2})},
          {"index", counting<int64_t>(DType::kI64, {rows})},
          {"matrix", counting<float>(DType::kF32, {rows, 2, 2})},
          {"one", counting<float>(DType::kF32, {rows, 1})},
          {"done", HostTensor::zeros(DType::kBool, {rows})},
          {"text", text},
          {"lists", lists},
          {"image", images}};
}

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
}

TEST(ParquetTest, RoundTripOfEveryKind) {
  const TempDir temp;
  write_parquet(temp / "a.parquet", sample_columns(5), {.metadata = {{"huggingface", "{}"}}});
  const ParquetReader reader(temp / "a.parquet");
  EXPECT_EQ(reader.num_rows(), 5);
  EXPECT_EQ(reader.metadata().at("huggingface"), "{}");
  const HostTensor state = reader.read_numbers("state");
  ASSERT_EQ(state.shape(), Shape({5, 3}));
  for (int i = 0; i < 15; ++i) EXPECT_EQ(state.as<double>()[i], i);
  EXPECT_EQ(reader.read_numbers("action").shape(), Shape({5, 2}));
  EXPECT_EQ(reader.read_numbers("index").shape(), Shape({5, 1}));
  EXPECT_EQ(reader.read_numbers("one").shape(), Shape({5, 1}));
  EXPECT_EQ(reader.read_numbers("done").shape(), Shape({5, 1}));
  const HostTensor matrix = reader.read_numbers("matrix");
  ASSERT_EQ(matrix.shape(), Shape({5, 4}));
  EXPECT_EQ(matrix.as<double>()[19], 19);
  EXPECT_EQ(reader.read_text("text")[4], "row 4");
  EXPECT_EQ(reader.read_text_list("lists")[2].size(), 2u);
  const ParquetImageColumn images = reader.read_images("image", 0, 5);
  EXPECT_TRUE(images.has_bytes(2));
  EXPECT_EQ(images.bytes(2).size(), 7u);
  EXPECT_EQ(images.bytes(2)[0], std::byte{2});
  EXPECT_FALSE(images.has_bytes(3));
  EXPECT_EQ(images.path(3), "p3");
}

TEST(ParquetTest, DescribesColumns) {
  const TempDir temp;
  write_parquet(temp / "a.parquet", sample_columns(2));
  const ParquetReader reader(temp / "a.parquet");
  const ParquetColumnInfo* state = reader.find_column("state");
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->kind, ParquetKind::kNumber);
  EXPECT_EQ(state->list_depth, 1);
  EXPECT_EQ(state->value_type, "float");
  EXPECT_EQ(reader.find_column("matrix")->list_depth, 2);
  EXPECT_EQ(reader.find_column("image")->kind, ParquetKind::kImage);
  EXPECT_EQ(reader.find_column("lists")->kind, ParquetKind::kTextList);
  EXPECT_EQ(reader.find_column("none"), nullptr);
}

TEST(ParquetTest, RowRangesOverRowGroups) {
  const TempDir temp;
  ParquetWriter writer(temp / "a.parquet");
  for (int group = 0; group < 3; ++group) {
    HostTensor values = counting<int64_t>(DType::kI64, {4});
    for (int64_t& value : values.as<int64_t>()) value += 4 * group;
    writer.write_row_group({{"index", values}});
  }
  writer.finish();
  const ParquetReader reader(temp / "a.parquet");
  ASSERT_EQ(reader.num_row_groups(), 3);
  EXPECT_EQ(reader.row_group_start(2), 8);
  for (int64_t begin = 0; begin <= 12; ++begin) {
    for (int64_t count = 0; begin + count <= 12; ++count) {
      const HostTensor values = reader.read_numbers("index", begin, count);
      ASSERT_EQ(values.shape()[0], count);
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ(values.as<double>()[i], begin + i);
    }
  }
}

TEST(ParquetTest, WrongColumnsAreNamed) {
  const TempDir temp;
  write_parquet(temp / "a.parquet", sample_columns(2));
  const ParquetReader reader(temp / "a.parquet");
  expect_contains(error_of([&] { reader.read_numbers("none"); }), "column 'none' is missing");
  expect_contains(error_of([&] { reader.read_numbers("text"); }), "column of the wrong type");
  expect_contains(error_of([&] { reader.read_text("state"); }), "column state");
  expect_contains(error_of([&] { reader.read_images("state", 0, 1); }), "struct<bytes");
}

TEST(ParquetTest, DamagedFilesAreDataErrors) {
  const TempDir temp;
  const fs::path path = temp / "a.parquet";
  const auto open = [&] { ParquetReader reader(path); };
  expect_contains(error_of(open), "No such file");
  write_parquet(path, sample_columns(50));
  const std::string bytes = read_text_file(path);
  for (const size_t length : {size_t{0}, size_t{3}, bytes.size() / 2, bytes.size() - 1}) {
    write_file_atomic(path, std::string_view(bytes).substr(0, length));
    expect_contains(error_of(open), "parquet file");
  }
  write_file_atomic(path, std::string(1000, 'x'));
  expect_contains(error_of(open), "parquet file");
}

// Bytes turned over at random: a DataError or values, never a crash.
TEST(ParquetTest, FlippedBytesNeverCrash) {
  const TempDir temp;
  const fs::path path = temp / "a.parquet";
  write_parquet(path, sample_columns(50));
  const std::string good = read_text_file(path);
  Random random(5, RandomUse::kTest, 0, 0);
  for (int round = 0; round < 400; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 3; ++i) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.next_u32());
    }
    std::ofstream(path, std::ios::binary) << bytes;
    error_of([&] {
      const ParquetReader reader(path);
      for (const ParquetColumnInfo& column : reader.columns()) {
        if (reader.num_rows() > 1000) continue;
        if (column.kind == ParquetKind::kNumber) reader.read_numbers(column.name);
        if (column.kind == ParquetKind::kText) reader.read_text(column.name);
        if (column.kind == ParquetKind::kImage)
          reader.read_images(column.name, 0, reader.num_rows());
      }
    });
  }
}

TEST(ParquetTest, UnfinishedWriterLeavesNothing) {
  const TempDir temp;
  {
    ParquetWriter writer(temp / "a.parquet");
    writer.write_row_group(sample_columns(3));
  }
  EXPECT_TRUE(fs::is_empty(temp.path()));
  EXPECT_THROW(write_parquet(temp / "no_folder/a.parquet", sample_columns(1)), DataError);
}

TEST(ParquetTest, UnequalRowsAreOurBug) {
  const TempDir temp;
  ParquetWriter writer(temp / "a.parquet");
  EXPECT_THROW(writer.write_row_group({{"a", counting<float>(DType::kF32, {3})},
                                       {"b", counting<float>(DType::kF32, {4})}}),
               InternalError);
}

}  // namespace
}  // namespace wam::data
