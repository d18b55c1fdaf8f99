// Named tensors in files, whatever the format: what checkpoint loading is written against.
// Formats: a safetensors file, a folder or *.safetensors.index.json of safetensors shards, and a
// torch-zip .pth/.pt. They are told apart by content, never by extension.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wam/tensor/host_tensor.h"

namespace wam {

// Read-only. Opening reads and checks names, types and byte ranges only; load() touches the data.
// Thread-safe: any number of threads may load at once. Files must not be changed or shortened while
// the archive or a tensor loaded from it is in use (the mapping would fault).
class TensorArchive {
 public:
  virtual ~TensorArchive() = default;

  // Every tensor's name, sorted. Names are valid UTF-8 and may hold any character: use quote() of
  // wam/base/quote.h to print them.
  virtual const std::vector<std::string>& names() const = 0;
  // Type of a tensor; nullptr if there is none of that name. Lives as long as the archive.
  virtual const TensorType* find(const std::string& name) const = 0;
  // The tensor's values: a view that keeps the memory-mapped file alive where the bytes lie
  // contiguous and aligned for the element type, else a copy. A view's memory is READ-ONLY: clone()
  // before writing to it. Throws DataError for an unknown name (a near one is offered) or, in a
  // torch zip, for bytes that do not have the checksum stored with them.
  virtual HostTensor load(const std::string& name) const = 0;
  // Text beside the tensors: safetensors __metadata__ (shards and index merged, index last);
  // numbers, strings, booleans and None of a torch pickle under their flattened names.
  virtual const std::map<std::string, std::string>& metadata() const = 0;
  // The files read: the one file, or the index followed by its shards in order of name.
  virtual const std::vector<std::filesystem::path>& files() const = 0;
  // "safetensors", "safetensors sharded" or "torch zip".
  virtual std::string_view format() const = 0;

  bool contains(const std::string& name) const { return find(name) != nullptr; }
};

struct ArchiveOptions {
  // Torch zip only: take the value under this top-level key as the root, as in
  // torch.load(path)["model_state_dict"]. Empty: the whole pickle, nested keys joined with '.'.
  // Given for a safetensors archive it is refused (DataError).
  std::string key;
};

// Opens a file or folder. A folder must hold exactly one *.safetensors.index.json or, with none,
// exactly one *.safetensors. Throws DataError naming file, place, value, rule and remedy for
// anything missing, damaged, hostile or of another format.
std::unique_ptr<TensorArchive> open_tensor_archive(const std::filesystem::path& path,
                                                   const ArchiveOptions& options = {});

}  // namespace wam
