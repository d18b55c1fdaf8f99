// Thousands of damaged copies of small valid files: each loads or is refused with a DataError.
#include "wam/base/philox.h"
#include "wam/tensor/archive_testing.h"
#include "wam/tensor/safetensors_writer.h"
#include "wam/tensor/torch_zip_fixture.h"

namespace wam {
namespace {

constexpr int kMutations = 2000;

std::map<std::string, HostTensor> small_tensors() {
  return {{"a.weight", counting(DType::kF32, {2, 3})},
          {"a.bias", counting(DType::kBF16, {3})},
          {"flags", counting(DType::kBool, {2})},
          {"ids", counting(DType::kI64, {4})}};
}

char random_byte(Random& random) {
  // Often a value at the edge of a field's range.
  constexpr char kEdges[] = {'\0', '\1', '\x7f', '\x80', '\xff'};
  return random.below(2) ? kEdges[random.below(5)] : static_cast<char>(random.below(256));
}

// One to four of: a byte changed, a cut, bytes removed, repeated or inserted.
std::string mutate(std::string bytes, Random& random) {
  for (uint64_t n = 1 + random.below(4); n > 0 && !bytes.empty(); --n) {
    const size_t place = random.below(bytes.size());
    const size_t length = std::min<size_t>(1 + random.below(16), bytes.size() - place);
    switch (random.below(8)) {
      case 0:
        bytes.resize(place);
        break;
      case 1:
        bytes.erase(place, length);
        break;
      case 2:
        bytes.insert(place, bytes.substr(place, length));
        break;
      case 3:
        bytes.insert(place, length, random_byte(random));
        break;
      default:
        bytes[place] = random_byte(random);
    }
  }
  return bytes;
}

// Writes kMutations damaged copies of `valid` as folder/name, one after the other, opens `opened`
// each time and gives the number of copies that still load.
int count_loadable(const std::string& valid, const TempDir& folder, const std::string& name,
                   const std::filesystem::path& opened) {
  int loadable = 0;
  for (int i = 0; i < kMutations; ++i) {
    Random random(20240601, RandomUse::kTest, 0, static_cast<uint64_t>(i));
    write_unflushed(folder / name, mutate(valid, random));
    try {
      const auto archive = open_tensor_archive(opened);
      for (const std::string& tensor : archive->names()) values_of(archive->load(tensor));
      ++loadable;
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
  return loadable;
}

// A mutation may hit padding or values, so some copies load; most must not.
void expect_mostly_refused(int loadable) {
  EXPECT_GT(loadable, 0);
  EXPECT_LT(loadable, kMutations / 2);
}

TEST(ArchiveMutation, Safetensors) {
  const TempDir folder;
  write_safetensors(folder / "valid", small_tensors(), {{"note", "text"}});
  expect_mostly_refused(
      count_loadable(read_text_file(folder / "valid"), folder, "file", folder / "file"));
}

TEST(ArchiveMutation, Index) {
  const TempDir folder;
  std::vector<NamedType> types;
  for (const auto& [name, tensor] : small_tensors()) types.push_back({name, tensor.type()});
  write_safetensors_sharded(
      folder.path(), "m", types, [](const std::string& name) { return small_tensors().at(name); },
      {}, 24);
  const std::string name = "m.safetensors.index.json";
  expect_mostly_refused(count_loadable(read_text_file(folder / name), folder, name, folder / name));
}

TEST(ArchiveMutation, TorchZip) {
  const TempDir folder;
  expect_mostly_refused(
      count_loadable(torch_zip_bytes(small_tensors()), folder, "file", folder / "file"));
}

// Without checksums the damaged pickle itself is read.
TEST(ArchiveMutation, Pickle) {
  const TempDir folder;
  PickleAssembler p;
  p.op("}q\x01(").text("w").tensor("FloatStorage", "0", 6, 0, {2, 3}, {1, 2});
  p.text("list")
      .op("](")
      .integer(5)
      .real(1.5)
      .op("K\x07M\x01\x02Nh\x01")
      .op("0e")
      .text("pair")
      .op("\x88\x89\x86u");
  int loadable = 0;
  for (int i = 0; i < kMutations; ++i) {
    Random random(20240602, RandomUse::kTest, 0, static_cast<uint64_t>(i));
    const ZipContents entries = torch_entries(mutate(p.stop(), random), {std::string(24, '\1')});
    if (error_of_bytes(zip_bytes(entries, {.has_crc = false})).empty()) ++loadable;
  }
  expect_mostly_refused(loadable);
}

}  // namespace
}  // namespace wam
