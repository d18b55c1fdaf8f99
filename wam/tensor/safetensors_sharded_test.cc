#include <algorithm>

#include "wam/tensor/archive_testing.h"
#include "wam/tensor/safetensors.h"
#include "wam/tensor/safetensors_writer.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

// Five tensors of 40 bytes, a.0 to a.4, value i in all elements of a.i.
HostTensor numbered(const std::string& name) {
  HostTensor tensor(DType::kF32, {10});
  std::ranges::fill(tensor.as<float>(), static_cast<float>(name.back() - '0'));
  return tensor;
}

std::vector<NamedType> five_types() {
  std::vector<NamedType> types;
  for (int i = 4; i >= 0; --i) types.push_back({"a." + std::to_string(i), {DType::kF32, {10}}});
  return types;
}

std::vector<WrittenFile> write_five(const fs::path& folder, int64_t max_shard_bytes) {
  return write_safetensors_sharded(folder, "model", five_types(), numbered, {{"format", "pt"}},
                                   max_shard_bytes);
}

void write_index_text(const fs::path& folder, const std::string& weight_map) {
  write_file_atomic(folder / "model.safetensors.index.json", "{\"weight_map\":" + weight_map + "}");
}

TEST(ShardedSafetensors, RoundTrip) {
  const TempDir folder;
  const std::vector<WrittenFile> written = write_five(folder.path(), 80);
  ASSERT_EQ(written.size(), 4u);
  EXPECT_EQ(written[0].path.filename(), "model-00001-of-00003.safetensors");
  EXPECT_EQ(written[3].path.filename(), "model.safetensors.index.json");
  for (const fs::path& path : {folder.path(), folder / "model.safetensors.index.json"}) {
    const auto archive = open_tensor_archive(path);
    EXPECT_EQ(archive->format(), "safetensors sharded");
    EXPECT_EQ(archive->names().size(), 5u);
    EXPECT_EQ(archive->files().size(), 4u);
    EXPECT_EQ(archive->metadata().at("format"), "pt");
    EXPECT_EQ(archive->metadata().at("total_size"), "200");
    for (const std::string& name : archive->names()) {
      EXPECT_EQ(values_of(archive->load(name)), values_of(numbered(name))) << name;
    }
    EXPECT_EQ(archive->find("b"), nullptr);
    EXPECT_THROW(archive->load("b"), DataError);
  }
}

TEST(ShardedSafetensors, OneShardIsAPlainFile) {
  const TempDir folder;
  const std::vector<WrittenFile> written = write_five(folder.path(), 200);
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].path.filename(), "model.safetensors");
  EXPECT_EQ(open_tensor_archive(folder.path())->names().size(), 5u);
}

TEST(ShardedSafetensors, TensorLargerThanAShardStandsAlone) {
  const TempDir folder;
  EXPECT_EQ(write_five(folder.path(), 1).size(), 6u);
  EXPECT_EQ(error_of_loading(folder.path()), "");
}

TEST(ShardedSafetensors, WritesIntoAFreshFolderOnly) {
  const TempDir folder;
  write_five(folder.path(), 80);
  EXPECT_THROW(write_five(folder.path(), 1000), DataError);
  EXPECT_THROW(write_five(folder / "absent", 1000), DataError);
}

TEST(ShardedSafetensors, RefusesMissingOrForeignShards) {
  const TempDir folder;
  write_five(folder.path(), 80);
  const fs::path shard = folder / "model-00002-of-00003.safetensors";
  const std::string bytes = read_text_file(shard);
  fs::remove(shard);
  expect_error(error_of_loading(folder.path()),
               "file missing, got 'model-00002-of-00003.safetensors'");
  write_safetensors(shard, {{"a.2", numbered("a.2")}});
  expect_error(error_of_loading(folder.path()), "tensor is not in the file named for it");
  write_safetensors(shard,
                    {{"a.2", numbered("a.2")}, {"a.3", numbered("a.3")}, {"b", numbered("a.0")}});
  expect_error(error_of_loading(folder.path()),
               "holds a tensor the index does not place there, got 'b'");
  write_file_atomic(shard, std::string_view(bytes).substr(0, bytes.size() - 1));
  expect_error(error_of_loading(folder.path()), "byte range outside the data");
  write_file_atomic(shard, bytes);
  EXPECT_EQ(error_of_loading(folder.path()), "");
}

TEST(ShardedSafetensors, RefusesTheSameTensorInTwoShards) {
  const TempDir folder;
  write_safetensors(folder / "1", {{"a.1", numbered("a.1")}});
  write_safetensors(folder / "2", {{"a.1", numbered("a.1")}, {"a.2", numbered("a.2")}});
  write_index_text(folder.path(), R"({"a.1":"1","a.2":"2"})");
  expect_error(error_of_loading(folder.path()), "does not place there, got 'a.1'");
}

TEST(ShardedSafetensors, RefusesDamagedIndexes) {
  const TempDir folder;
  write_safetensors(folder / "s", {{"a.1", numbered("a.1")}});
  fs::create_directory(folder / "sub");
  const std::pair<const char*, const char*> cases[] = {
      {R"({"a.1":"../s"})", "not a file name, got '../s'"},
      {R"({"a.1":"/etc/passwd"})", "not a file name"},
      {R"({"a.1":"sub/s"})", "not a file name"},
      {R"({"a.1":".."})", "not a file name"},
      {R"({"a.1":""})", "not a file name"},
      {R"({"a.1":"s\u0000"})", "not a file name"},
      {R"({"a.1":1})", "not a file name"},
      {R"({"a.1":"sub"})", "Is a directory"},
      {R"({"a.1":"s","a.1":"s"})", "key given twice, got 'a.1'"},
      {R"({"a.1":"s"},"weight_map":{})", "key given twice, got 'weight_map'"},
      {"{}", "weight_map is empty"},
      {"[]", "no weight_map"},
      {R"({"a.1":"s"},"metadata":3)", "metadata is not an object"},
      {R"({"a.1":"s"},"x":[[[[[1]]]]])", "nested too deep"},
      {R"({"a.1")", "not valid JSON"},
  };
  for (const auto& [weight_map, error] : cases) {
    write_index_text(folder.path(), weight_map);
    expect_error(error_of_loading(folder.path()), error);
  }
}

TEST(OpenTensorArchive, RefusesFoldersWithoutOneCheckpoint) {
  const TempDir folder;
  expect_error(error_of_loading(folder.path()), "got 0 candidates");
  write_safetensors(folder / "a.safetensors", {{"a.1", numbered("a.1")}});
  EXPECT_EQ(error_of_loading(folder.path()), "");
  write_safetensors(folder / "b.safetensors", {{"a.1", numbered("a.1")}});
  expect_error(error_of_loading(folder.path()), "got 2 candidates");
  expect_error(error_of_loading(folder / "absent"), "No such file");
}

TEST(OpenTensorArchive, SaysWhatOtherFormatsAre) {
  expect_error(error_of_bytes("version https://git-lfs.github.com/spec/v1\noid"),
               "Git LFS pointer");
  expect_error(error_of_bytes("\x80\x02}q\x01."), "bare pickle");
  expect_error(error_of_bytes("<!DOCTYPE html><html>page</html>"), "header too long");
  expect_error(error_of_bytes(std::string("{}      ") + "x", {.key = "model"}),
               "of a torch file only");
}

}  // namespace
}  // namespace wam
