#include "wam/tensor/safetensors.h"

#include <utility>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/tensor/archive_error.h"
#include "wam/tensor/mapped_tensor.h"
#include "wam/tensor/safetensors_header.h"
#include "wam/tensor/safetensors_index.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

class SafetensorsFile : public TensorArchive {
 public:
  explicit SafetensorsFile(std::shared_ptr<const MappedFile> file)
      : file_(std::move(file)),
        header_(parse_safetensors_header(file_->bytes(), file_->path().string())),
        files_{file_->path()} {
    for (const auto& [name, entry] : header_.entries) names_.push_back(name);
  }

  const std::vector<std::string>& names() const override { return names_; }
  const std::map<std::string, std::string>& metadata() const override { return header_.metadata; }
  const std::vector<fs::path>& files() const override { return files_; }
  std::string_view format() const override { return "safetensors"; }

  const TensorType* find(const std::string& name) const override {
    const auto it = header_.entries.find(name);
    return it == header_.entries.end() ? nullptr : &it->second.type;
  }

  HostTensor load(const std::string& name) const override {
    const auto it = header_.entries.find(name);
    if (it == header_.entries.end()) throw_no_such_tensor(*this, name);
    const SafetensorsEntry& entry = it->second;
    return tensor_in_file(file_, header_.data_offset + entry.begin, entry.type,
                          "tensor " + quote(name));
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  SafetensorsHeader header_;
  std::vector<std::string> names_;
  std::vector<fs::path> files_;
};

class ShardedSafetensors : public TensorArchive {
 public:
  explicit ShardedSafetensors(const MappedFile& index) : files_{index.path()} {
    SafetensorsIndex parsed = parse_safetensors_index(index);
    for (const auto& [tensor, file] : parsed.weight_map) names_.push_back(tensor);
    open_shards(parsed);
    for (const auto& [tensor, file] : parsed.weight_map) locate(tensor, file);
    for (const auto& [file, shard] : shards_) check_all_listed(file, shard);
    metadata_.merge(parsed.metadata);
  }

  const std::vector<std::string>& names() const override { return names_; }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }
  const std::vector<fs::path>& files() const override { return files_; }
  std::string_view format() const override { return "safetensors sharded"; }

  const TensorType* find(const std::string& name) const override {
    const auto it = places_.find(name);
    return it == places_.end() ? nullptr : it->second->find(name);
  }

  HostTensor load(const std::string& name) const override {
    const auto it = places_.find(name);
    if (it == places_.end()) throw_no_such_tensor(*this, name);
    return it->second->load(name);
  }

 private:
  std::string where() const { return files_.front().string(); }

  void open_shards(const SafetensorsIndex& index) {
    for (const auto& [tensor, file] : index.weight_map) {
      if (shards_.contains(file)) continue;
      const fs::path path = files_.front().parent_path() / file;
      if (!fs::exists(path)) {
        throw DataError({.where = where() + ": weight_map[" + quote(tensor) + "]",
                         .what = "file missing",
                         .got = quote(file),
                         .expected = "a file beside the index",
                         .remedy = "Fetch every shard into one folder."});
      }
      shards_.try_emplace(file, std::make_shared<const MappedFile>(path));
    }
    for (const auto& [file, shard] : shards_) {
      files_.push_back(shard.files().front());
      for (const auto& [key, value] : shard.metadata()) metadata_.try_emplace(key, value);
    }
  }

  void locate(const std::string& tensor, const std::string& file) {
    const SafetensorsFile& shard = shards_.at(file);
    if (!shard.contains(tensor)) {
      throw DataError(
          {.where = where() + ": weight_map[" + quote(tensor) + "]",
           .what = "tensor is not in the file named for it",
           .got = quote(file),
           .remedy = "Index and shards are of different checkpoints: fetch them together."});
    }
    places_.emplace(tensor, &shard);
  }

  void check_all_listed(const std::string& file, const SafetensorsFile& shard) const {
    for (const std::string& tensor : shard.names()) {
      const auto it = places_.find(tensor);
      if (it != places_.end() && it->second == &shard) continue;
      throw DataError(
          {.where = where(),
           .what = "shard " + quote(file) + " holds a tensor the index does not place there",
           .got = quote(tensor),
           .remedy = "Index and shards are of different checkpoints: fetch them together."});
    }
  }

  std::vector<fs::path> files_;
  std::map<std::string, SafetensorsFile> shards_;
  std::map<std::string, const SafetensorsFile*> places_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace

std::unique_ptr<TensorArchive> open_safetensors(std::shared_ptr<const MappedFile> file) {
  return std::make_unique<SafetensorsFile>(std::move(file));
}

std::unique_ptr<TensorArchive> open_sharded_safetensors(const MappedFile& index) {
  return std::make_unique<ShardedSafetensors>(index);
}

}  // namespace wam
