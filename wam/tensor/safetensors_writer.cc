#include "wam/tensor/safetensors_writer.h"

#include <algorithm>
#include <utility>

#include "wam/base/check.h"
#include "wam/base/files.h"
#include "wam/base/hash.h"
#include "wam/base/quote.h"
#include "wam/tensor/safetensors_header.h"
#include "wam/tensor/safetensors_index.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

// An AtomicFile that hashes what passes.
class HashedFile {
 public:
  explicit HashedFile(const fs::path& path) : path_(path), file_(path) {}
  void write(std::span<const std::byte> bytes) {
    file_.write(bytes);
    hash_.update(bytes);
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  WrittenFile commit() {
    file_.commit();
    return {.path = path_, .size_bytes = file_.bytes_written(), .hash = hash_.digest()};
  }

 private:
  fs::path path_;
  AtomicFile file_;
  Hash64 hash_;
};

// Order in the file. Falling element sizes keep every tensor aligned without holes.
void sort_for_file(std::vector<NamedType>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedType& a, const NamedType& b) {
    const int64_t size_a = size_bytes(a.type.dtype), size_b = size_bytes(b.type.dtype);
    return size_a != size_b ? size_a > size_b : a.name < b.name;
  });
}

std::map<std::string, SafetensorsEntry> assign_ranges(const std::vector<NamedType>& sorted) {
  std::map<std::string, SafetensorsEntry> entries;
  int64_t offset = 0;
  for (const NamedType& tensor : sorted) {
    WAM_CHECK(is_valid_utf8(tensor.name) && tensor.name != "__metadata__") << quote(tensor.name);
    const int64_t end = offset + tensor.type.size_bytes();
    const bool is_new =
        entries.emplace(tensor.name, SafetensorsEntry{tensor.type, offset, end}).second;
    WAM_CHECK(is_new) << "tensor name given twice: " << quote(tensor.name);
    offset = end;
  }
  return entries;
}

void check_metadata(const fs::path& path, const std::map<std::string, std::string>& metadata) {
  for (const auto& [key, value] : metadata) {
    if (is_valid_utf8(key) && is_valid_utf8(value)) continue;
    throw DataError({.where = path.string(),
                     .what = "metadata is not UTF-8",
                     .got = quote(key) + ": " + quote(value),
                     .remedy = "Names and texts stored in a checkpoint must be UTF-8."});
  }
}

void write_tensor(HashedFile& file, const NamedType& expected, const TensorProducer& producer) {
  const HostTensor tensor = producer(expected.name);
  WAM_CHECK(tensor.type() == expected.type)
      << quote(expected.name) << " is " << tensor.type().to_string() << ", announced "
      << expected.type.to_string();
  if (tensor.size_bytes() == 0) return;
  file.write(
      {static_cast<const std::byte*>(tensor.data()), static_cast<size_t>(tensor.size_bytes())});
}

using Shard = std::vector<NamedType>;

std::vector<Shard> deal_to_shards(std::vector<NamedType> tensors, int64_t max_shard_bytes) {
  std::sort(tensors.begin(), tensors.end(),
            [](const NamedType& a, const NamedType& b) { return a.name < b.name; });
  std::vector<Shard> shards(1);
  int64_t used = 0;
  for (NamedType& tensor : tensors) {
    const int64_t size = tensor.type.size_bytes();
    if (!shards.back().empty() && size > max_shard_bytes - used) {
      shards.emplace_back();
      used = 0;
    }
    used += size;
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

std::string five_digits(size_t value) {
  const std::string text = std::to_string(value);
  return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
}

// An index left from another checkpoint would hide or mix with the new one.
void check_no_checkpoint(const fs::path& folder, const std::string& stem) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool is_checkpoint = name.starts_with(stem + ".safetensors") ||
                               (name.starts_with(stem + "-") && name.ends_with(".safetensors"));
    if (!is_checkpoint) continue;
    throw DataError({.where = folder.string(),
                     .what = "the folder already holds a checkpoint",
                     .got = quote(name),
                     .remedy = "Write into a fresh folder."});
  }
  if (error) throw_io_error(folder, "cannot list the folder", error.value());
}

WrittenFile write_index(const fs::path& path, const SafetensorsIndex& index,
                        int64_t total_size_bytes) {
  HashedFile file(path);
  file.write(make_safetensors_index(index, total_size_bytes));
  return file.commit();
}

}  // namespace

WrittenFile write_safetensors(const fs::path& path, std::vector<NamedType> tensors,
                              const TensorProducer& producer,
                              const std::map<std::string, std::string>& metadata) {
  check_metadata(path, metadata);
  sort_for_file(tensors);
  HashedFile file(path);
  file.write(make_safetensors_header(assign_ranges(tensors), metadata));
  for (const NamedType& tensor : tensors) write_tensor(file, tensor, producer);
  return file.commit();
}

WrittenFile write_safetensors(const fs::path& path,
                              const std::map<std::string, HostTensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<NamedType> types;
  for (const auto& [name, tensor] : tensors) types.push_back({name, tensor.type()});
  return write_safetensors(
      path, std::move(types), [&](const std::string& name) { return tensors.at(name); }, metadata);
}

std::vector<WrittenFile> write_safetensors_sharded(
    const fs::path& folder, const std::string& stem, std::vector<NamedType> tensors,
    const TensorProducer& producer, const std::map<std::string, std::string>& metadata,
    int64_t max_shard_bytes) {
  WAM_CHECK(max_shard_bytes > 0);
  check_no_checkpoint(folder, stem);
  const std::vector<Shard> shards = deal_to_shards(std::move(tensors), max_shard_bytes);
  if (shards.size() == 1) {
    return {
        write_safetensors(folder / (stem + ".safetensors"), shards.front(), producer, metadata)};
  }
  std::vector<WrittenFile> written;
  SafetensorsIndex index;
  int64_t total_size_bytes = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name =
        stem + "-" + five_digits(i + 1) + "-of-" + five_digits(shards.size()) + ".safetensors";
    written.push_back(write_safetensors(folder / name, shards[i], producer, metadata));
    for (const NamedType& tensor : shards[i]) {
      index.weight_map[tensor.name] = name;
      total_size_bytes += tensor.type.size_bytes();
    }
  }
  written.push_back(
      write_index(folder / (stem + ".safetensors.index.json"), index, total_size_bytes));
  return written;
}

}  // namespace wam
