#include "wam/tensor/torch_zip.h"

#include <array>
#include <cstring>

#include "wam/tensor/archive_testing.h"
#include "wam/tensor/torch_zip_fixture.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

// A storage of the float32 numbers 0, 1, 2, ...
std::string float_storage(int64_t count) {
  const HostTensor tensor = counting(DType::kF32, {count});
  return {static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.size_bytes())};
}

std::string torch_file(const PickleAssembler& pickle, const std::vector<std::string>& storages) {
  return zip_bytes(torch_entries(pickle.stop(), storages));
}

std::unique_ptr<TensorArchive> open_bytes(const TempDir& folder, std::string_view bytes,
                                          const std::string& key = "") {
  write_file_atomic(folder / "file", bytes);
  return open_tensor_archive(folder / "file", {.key = key});
}

TEST(TorchZip, RoundTripOfEveryType) {
  const TempDir folder;
  std::map<std::string, HostTensor> tensors;
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32, DType::kI64,
                      DType::kU8, DType::kBool, DType::kI8, DType::kI16}) {
    tensors["t." + std::string(name(dtype))] = counting(dtype, {2, dtype == DType::kBool ? 1 : 3});
  }
  tensors["scalar"] = counting(DType::kF32, Shape());
  tensors["empty"] = HostTensor(DType::kF32, {0, 4});
  const auto archive = open_bytes(folder, torch_zip_bytes(tensors));
  EXPECT_EQ(archive->format(), "torch zip");
  ASSERT_EQ(archive->names().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_NE(archive->find(name), nullptr) << name;
    EXPECT_EQ(*archive->find(name), tensor.type()) << name;
    EXPECT_EQ(values_of(archive->load(name)), values_of(tensor)) << name;
  }
  EXPECT_THROW(archive->load("absent"), DataError);
}

TEST(TorchZip, ReadsZip64CommentsAndMissingChecksums) {
  const std::string pickle = PickleAssembler()
                                 .op("}")
                                 .text("x")
                                 .tensor("FloatStorage", "0", 4, 0, {4}, {1})
                                 .op("s")
                                 .stop();
  const ZipContents entries = torch_entries(pickle, {float_storage(4)});
  for (const ZipFixtureOptions& options :
       {ZipFixtureOptions{.zip64 = true}, ZipFixtureOptions{.has_crc = false},
        ZipFixtureOptions{.comment = "PK\x05\x06 hello"}, ZipFixtureOptions{.alignment = 1}}) {
    const TempDir folder;
    const auto archive = open_bytes(folder, zip_bytes(entries, options));
    EXPECT_EQ(values_of(archive->load("x")), (std::vector<double>{0, 1, 2, 3}));
  }
}

TEST(TorchZip, FlattensContainersAndKeepsScalars) {
  const TempDir folder;
  PickleAssembler p;
  p.op("}(").text("model").op("}").text("w").tensor("FloatStorage", "0", 6, 0, {2}, {1}).op("s");
  p.text("list").op("](").tensor("FloatStorage", "0", 6, 2, {2}, {1}).integer(-7).op("e");
  p.text("pair").op("N\x88\x86");
  p.integer(3).real(0.5).text("name").text("t\xc3\xa4").op("u");
  const std::string bytes = torch_file(p, {float_storage(6)});
  const auto archive = open_bytes(folder, bytes);
  EXPECT_EQ(archive->names(), (std::vector<std::string>{"list.0", "model.w"}));
  EXPECT_EQ(values_of(archive->load("list.0")), (std::vector<double>{2, 3}));
  EXPECT_EQ(archive->metadata(), (std::map<std::string, std::string>{{"list.1", "-7"},
                                                                     {"pair.0", "None"},
                                                                     {"pair.1", "True"},
                                                                     {"3", "0.5"},
                                                                     {"name", "t\xc3\xa4"}}));
  EXPECT_EQ(open_bytes(folder, bytes, "model")->names(), (std::vector<std::string>{"w"}));
  expect_error(error_of_bytes(bytes, {.key = "modell"}),
               "expected one of 'model', 'list', 'pair', 'name'");
}

TEST(TorchZip, RootMayBeATensor) {
  const TempDir folder;
  const std::string bytes =
      torch_file(PickleAssembler().tensor("FloatStorage", "0", 2, 0, {2}, {1}), {float_storage(2)});
  EXPECT_EQ(values_of(open_bytes(folder, bytes)->load("tensor")), (std::vector<double>{0, 1}));
  expect_error(error_of_bytes(bytes, {.key = "model"}), "root of the pickle is no dict");
}

TEST(TorchZip, ReadsLaterProtocolsAndAttributes) {
  const TempDir folder;
  // Protocol 4: frame, STACK_GLOBAL, MEMOIZE, short texts; an OrderedDict with attributes set.
  PickleAssembler p(std::string("\x80\x04"));
  p.op(std::string_view("\x95\x20\0\0\0\0\0\0\0", 9))
      .op("\x8c\x0b"
          "collections\x94\x8c\x0bOrderedDict\x94\x93)R\x94(");
  p.op("\x8c\x01x\x94").tensor("FloatStorage", "0", 2, 0, {2}, {1}).op("\x94u");
  p.op("}").text("_metadata").global("collections", "OrderedDict").op(")Rsb");
  const auto archive = open_bytes(folder, torch_file(p, {float_storage(2)}));
  EXPECT_EQ(archive->names(), (std::vector<std::string>{"x"}));
  EXPECT_TRUE(archive->metadata().empty());
}

TEST(TorchZip, ParametersAndIntegersOfEveryLength) {
  const TempDir folder;
  PickleAssembler p;
  p.op("}").text("p").global("torch._utils", "_rebuild_parameter").op("(");
  p.tensor("FloatStorage", "0", 2, 0, {2}, {1})
      .op("\x88")
      .global("collections", "OrderedDict")
      .op(")RtRs");
  p.text("i")
      .op("](")
      .op("K\xff")
      .op("M\xff\xff")
      .op("J\xff\xff\xff\xff")
      .op(std::string_view("\x8a\0", 2));
  p.op("\x8a\x01\xff")
      .op("\x8a\x02\xff\x7f")
      .op(std::string_view("\x8b\x03\0\0\0\xff\xff\xff", 8))
      .op("es");
  const auto archive = open_bytes(folder, torch_file(p, {float_storage(2)}));
  EXPECT_EQ(values_of(archive->load("p")), (std::vector<double>{0, 1}));
  const std::array<const char*, 7> expected = {"255", "65535", "-1", "0", "-1", "32767", "-1"};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(archive->metadata().at("i." + std::to_string(i)), expected[i]);
  }
}

TEST(TorchZip, SharedStorageAndOtherOrders) {
  const TempDir folder;
  PickleAssembler p;
  p.op("}(").text("rows").tensor("FloatStorage", "0", 6, 0, {2, 3}, {3, 1});
  p.text("columns").tensor("FloatStorage", "0", 6, 0, {3, 2}, {1, 3});
  p.text("every_other").tensor("FloatStorage", "0", 6, 1, {3}, {2});
  p.text("one").tensor("FloatStorage", "0", 6, 5, {1, 1}, {1000, INT64_MAX});
  p.text("empty").tensor("FloatStorage", "0", 6, 6, {0, 5}, {INT64_MAX, INT64_MAX}).op("u");
  const auto archive = open_bytes(folder, torch_file(p, {float_storage(6)}));
  EXPECT_EQ(values_of(archive->load("columns")), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values_of(archive->load("every_other")), (std::vector<double>{1, 3, 5}));
  EXPECT_EQ(values_of(archive->load("one")), (std::vector<double>{5}));
  EXPECT_EQ(archive->load("empty").num_elements(), 0);
  EXPECT_EQ(archive->load("rows").data(), archive->load("rows").data());
}

// Expected digests and values by PyTorch: torch.load, contiguous(), bytes in order of name.
TEST(TorchZip, PublicFiles) {
  const fs::path candle = file_below("WAM_DATA_DIR", "checkpoints/candle/candle-core/tests");
  const fs::path taesd = file_below("WAM_DATA_DIR", "checkpoints/taesd");
  if (candle.empty() || taesd.empty())
    GTEST_SKIP() << "absent: checkpoints/{candle,taesd} below WAM_DATA_DIR";
  const std::vector<double> to_eight = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(values_of(open_tensor_archive(candle / "test.pt")->load("test")), to_eight);
  const auto keyed = open_tensor_archive(candle / "test_with_key.pt", {.key = "model_state_dict"});
  EXPECT_EQ(keyed->find("test")->to_string(), "i64[2,4]");
  EXPECT_EQ(values_of(keyed->load("test")), to_eight);
  EXPECT_TRUE(open_tensor_archive(candle / "test_with_key.pt")->contains("model_state_dict.test"));
  const HostTensor fortran =
      open_tensor_archive(candle / "fortran_tensor_3d.pth")->load("tensor_fortran");
  EXPECT_EQ(fortran.shape(), (Shape{2, 3, 4}));
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(fortran.as<int64_t>()[i], static_cast<int64_t>(i) + 1);
  struct Expected {
    const char* file;
    size_t tensors;
    const char* digest;
  };
  for (const Expected& e :
       {Expected{"taef2_decoder.pth", 79,
                 "8523f5f8b07e8d67d4aabb7abdb81a462580a0841b2203200496b3ed6e8b6f4d"},
        Expected{"taef2_encoder.pth", 79,
                 "b75e6a2568b52d1788f0b57614e627e2b79ced05a8ff1e4322ff1b96082873a5"},
        Expected{"taesana_encoder.pth", 69,
                 "60b07984e28a78f32f414cdd80606d71b643fc6c6e46240fb0b0485b5cc66ece"}}) {
    const auto archive = open_tensor_archive(taesd / e.file);
    EXPECT_EQ(archive->names().size(), e.tensors);
    EXPECT_EQ(digest_of(*archive), e.digest) << e.file;
  }
  const HostTensor bias = open_tensor_archive(taesd / "taef2_decoder.pth")->load("1.bias");
  EXPECT_EQ(bias.type().to_string(), "f16[64]");
  EXPECT_EQ(values_of(bias)[0], 0.298095703125);
}

// A bare tensor of video frames as torchcodec's tests hold them.
TEST(TorchZip, PublicBareTensor) {
  const fs::path path =
      file_below("WAM_DATA_DIR",
                 "torchcodec_test_resources/test/resources/h265_video.mp4.stream0.frame000005.pt");
  if (path.empty()) GTEST_SKIP() << "absent: torchcodec_test_resources below WAM_DATA_DIR";
  const HostTensor frame = open_tensor_archive(path)->load("tensor");
  EXPECT_EQ(frame.type().to_string(), "u8[128,128,3]");
  double sum = 0;
  for (double value : values_of(frame)) sum += value;
  EXPECT_EQ(sum, 4520090.0);
}

}  // namespace
}  // namespace wam
