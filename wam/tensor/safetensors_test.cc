#include "wam/tensor/safetensors.h"

#include <array>
#include <cstring>
#include <numeric>

#include "wam/tensor/archive_testing.h"
#include "wam/tensor/safetensors_header.h"
#include "wam/tensor/safetensors_writer.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

constexpr std::array kAllTypes = {DType::kF32, DType::kBF16, DType::kF16, DType::kF64,
                                  DType::kI32, DType::kI64,  DType::kU8,  DType::kBool,
                                  DType::kI8,  DType::kI16};

// A file of this header (length in front) and this many bytes of data 0, 1, 2, ...
std::string raw_file(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  file += header;
  for (size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

std::map<std::string, HostTensor> one_of_each() {
  std::map<std::string, HostTensor> tensors;
  for (DType dtype : kAllTypes) {
    const int64_t count = dtype == DType::kBool ? 2 : 5;
    tensors["t." + std::string(name(dtype))] = counting(dtype, {count});
  }
  tensors["scalar"] = counting(DType::kF32, Shape());
  tensors["empty"] = HostTensor(DType::kI64, {0, 3});
  return tensors;
}

TEST(Safetensors, RoundTripOfEveryType) {
  const TempDir folder;
  const auto tensors = one_of_each();
  const WrittenFile written = write_safetensors(folder / "a", tensors, {{"note", "x \"y\"\n"}});
  EXPECT_EQ(written.size_bytes, static_cast<int64_t>(fs::file_size(folder / "a")));
  EXPECT_EQ(written.hash, file_hash64(folder / "a"));
  const auto archive = open_tensor_archive(folder / "a");
  EXPECT_EQ(archive->format(), "safetensors");
  EXPECT_EQ(archive->metadata(), (std::map<std::string, std::string>{{"note", "x \"y\"\n"}}));
  ASSERT_EQ(archive->names().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_NE(archive->find(name), nullptr) << name;
    EXPECT_EQ(*archive->find(name), tensor.type()) << name;
    EXPECT_EQ(values_of(archive->load(name)), values_of(tensor)) << name;
  }
  EXPECT_EQ(archive->find("absent"), nullptr);
}

TEST(Safetensors, SameBytesWhateverTheOrder) {
  const TempDir folder;
  const auto tensors = one_of_each();
  std::vector<NamedType> types;
  for (const auto& [name, tensor] : tensors) types.insert(types.begin(), {name, tensor.type()});
  write_safetensors(folder / "a", tensors);
  write_safetensors(folder / "b", types, [&](const std::string& name) { return tensors.at(name); });
  EXPECT_EQ(read_text_file(folder / "a"), read_text_file(folder / "b"));
}

TEST(Safetensors, LoadsViewsThatKeepTheFile) {
  const TempDir folder;
  write_safetensors(folder / "a", {{"x", counting(DType::kF32, {4})}});
  auto archive = open_tensor_archive(folder / "a");
  const HostTensor first = archive->load("x"), second = archive->load("x");
  archive.reset();
  fs::remove(folder / "a");
  EXPECT_EQ(first.data(), second.data());
  EXPECT_EQ(values_of(first), (std::vector<double>{0, 1, 2, 3}));
}

TEST(Safetensors, UnalignedDataIsCopied) {
  const TempDir folder;
  for (const char* padding : {"", " ", "  ", "   ", "       "}) {
    const std::string header = R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    write_file_atomic(folder / "a", raw_file(header + padding, 8));
    const HostTensor x = open_tensor_archive(folder / "a")->load("x");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data()) % 4, 0u);
    EXPECT_EQ(x.as<uint32_t>()[1], 0x07060504u);
  }
}

TEST(Safetensors, NoTensors) {
  EXPECT_EQ(error_of_bytes(raw_file("{}", 0)), "");
  EXPECT_EQ(error_of_bytes(raw_file(R"({"__metadata__":{"a":"b"}})", 0)), "");
}

// The rule that each damaged header breaks, as the message names it.
TEST(Safetensors, RefusesDamagedHeaders) {
  const std::string x = R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  struct Case {
    std::string header;
    size_t data_bytes;
    const char* error;
  };
  const std::string two = R"("data_offsets":[0,8]},"y":{"dtype":"U8","shape":[4],)";
  const std::vector<Case> cases = {
      {x, 7, "byte range outside the data"},
      {x, 9, "bytes that belong to no tensor, got 9 bytes of data, expected 8"},
      {R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8,
       "got 8 bytes, expected 12 for f32[3]"},
      {R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8,
       "byte range outside the data"},
      {R"({"x":{"dtype":"F32","shape":[2],)" + two + R"("data_offsets":[6,10]}})", 10,
       "overlaps another"},
      {R"({"x":{"dtype":"F32","shape":[2],)" + two + R"("data_offsets":[9,13]}})", 13,
       "leaves a hole"},
      {R"({"x":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})", 8,
       "element type not supported, got 'F8_E4M3'"},
      {R"({"x":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", 8,
       "size too large"},
      {R"({"x":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8,
       "size too large"},
      {R"({"x":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]}})", 8,
       "no integer below 2^64"},
      {R"({"x":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "a negative number"},
      {R"({"x":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8, "no integer"},
      {R"({"x":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})", 8,
       "more than 8 dimensions"},
      {R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8, "data_offsets needs two"},
      {R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", 8,
       "more than 2 data_offsets"},
      {R"({"x":{"dtype":"F32","shape":[2]}})", 8, "is missing"},
      {R"({"x":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8,
       "key given twice: 'dtype'"},
      {R"({"x":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})", 8,
       "key given twice: 'shape'"},
      {R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", 8,
       "unknown key 'more'"},
      {R"({"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       0, "tensor name given twice, got 'x'"},
      {R"({"__metadata__":{"a":"b","a":"c"}})", 0, "metadata key given twice"},
      {R"({"__metadata__":{"a":1}})", 0, "a number where none belongs"},
      {R"({"__metadata__":{"a":{}}})", 0, "an object where none belongs"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "key given twice"},
      {R"({"x":[]})", 0, "a list where none belongs"},
      {R"({"x":null})", 0, "null is not allowed"},
      {"{\"x", 0, "not valid JSON"},
      {"{\"\xff\":{}}", 0, "not valid JSON"},
      {"{} x", 0, "not valid JSON"},
      {"[]", 0, "not a safetensors header"},
      {" {}", 0, "not a safetensors header"},
      {"", 0, "not a safetensors header"},
      {std::string("{\"x\":") + std::string(100000, '['), 0, "a list where none belongs"},
  };
  for (const Case& c : cases)
    expect_error(error_of_bytes(raw_file(c.header, c.data_bytes)), c.error);
}

TEST(Safetensors, RefusesDamagedLengths) {
  const std::string file = raw_file("{}", 0);
  std::string huge = file;
  huge[7] = '\x80';  // 2^63 and more
  expect_error(error_of_bytes(huge), "header too long, got 9223372036854775810 bytes");
  std::string past = file;
  past[0] = '\x03';
  expect_error(error_of_bytes(past),
               "header past the end of the file, got 3 bytes, expected at most 2");
  expect_error(error_of_bytes("abc"), "too short for safetensors");
  expect_error(error_of_bytes(""), "the file is empty");
}

TEST(Safetensors, RefusesABoolThatIsNone) {
  expect_error(
      error_of_bytes(raw_file(R"({"x":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", 3)),
      "tensor 'x' holds a bool that is neither 0 nor 1");
}

TEST(Safetensors, UnknownNameOffersOneWithAnotherPrefix) {
  const TempDir folder;
  write_safetensors(folder / "a", {{"action_head.model.head.weight", counting(DType::kF32, {1})}});
  const auto archive = open_tensor_archive(folder / "a");
  try {
    archive->load("head.weight");
    FAIL();
  } catch (const DataError& error) {
    expect_error(error.what(), "There is 'action_head.model.head.weight'");
  }
}

TEST(Safetensors, WriterRefusesMetadataThatIsNoText) {
  const TempDir folder;
  EXPECT_THROW(
      write_safetensors(folder / "a", std::map<std::string, HostTensor>{}, {{"k", "\xff"}}),
      DataError);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Safetensors, WriterChecksTheProducer) {
  const TempDir folder;
  const auto wrong = [](const std::string&) { return counting(DType::kF32, {3}); };
  EXPECT_THROW(write_safetensors(folder / "a", {{"x", {DType::kF32, {2}}}}, wrong), InternalError);
  EXPECT_THROW(write_safetensors(folder / "a",
                                 {{"x", {DType::kF32, {3}}}, {"x", {DType::kF32, {3}}}}, wrong),
               InternalError);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// Public files, read by their own library for the expected values.
TEST(Safetensors, PublicFiles) {
  const fs::path voices = file_below(
      "WAM_DATA_DIR", "checkpoints/candle/candle-examples/examples/csm/voices.safetensors");
  const fs::path codes = file_below(
      "WAM_DATA_DIR", "checkpoints/candle/candle-examples/examples/encodec/jfk-codes.safetensors");
  if (voices.empty() || codes.empty())
    GTEST_SKIP() << "absent: checkpoints/candle below WAM_DATA_DIR";
  const auto archive = open_tensor_archive(voices);
  EXPECT_EQ(archive->names(), (std::vector<std::string>{"mask", "tokens"}));
  EXPECT_EQ(archive->find("mask")->to_string(), "u8[1,982,33]");
  const std::vector<double> tokens = values_of(archive->load("tokens")),
                            mask = values_of(archive->load("mask"));
  EXPECT_EQ(std::accumulate(tokens.begin(), tokens.end(), 0.0), 25768678.0);
  EXPECT_EQ(std::accumulate(mask.begin(), mask.end(), 0.0), 24294.0);
  const std::vector<double> jfk = values_of(open_tensor_archive(codes)->load("codes"));
  EXPECT_EQ(std::accumulate(jfk.begin(), jfk.end(), 0.0), 960640.0);
  EXPECT_EQ((std::vector<double>(jfk.begin(), jfk.begin() + 3)),
            (std::vector<double>{865, 62, 408}));
}

}  // namespace
}  // namespace wam
