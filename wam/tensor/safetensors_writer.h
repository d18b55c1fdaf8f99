// Writing safetensors, one tensor in memory at a time; every file appears whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "wam/tensor/host_tensor.h"

namespace wam {

struct NamedType {
  std::string name;
  TensorType type;
};

// Gives the values of a tensor when its turn to be written comes; must have the type announced.
using TensorProducer = std::function<HostTensor(const std::string& name)>;

struct WrittenFile {
  std::filesystem::path path;
  int64_t size_bytes = 0;
  uint64_t hash = 0;  // hash64 of the whole file
};

// Writes `tensors` (any order, unique names) with `metadata` (UTF-8) as __metadata__. The bytes
// depend on names, types, values and metadata only: tensors lie by falling element size, then by
// name. DataError if the disk fails; nothing is left then.
WrittenFile write_safetensors(const std::filesystem::path& path, std::vector<NamedType> tensors,
                              const TensorProducer& producer,
                              const std::map<std::string, std::string>& metadata = {});

WrittenFile write_safetensors(const std::filesystem::path& path,
                              const std::map<std::string, HostTensor>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

// Writes STEM.safetensors if all tensors fit in `max_shard_bytes`, else
// STEM-0000i-of-0000n.safetensors and, last, STEM.safetensors.index.json. Tensors are dealt in
// order of name; one larger than the limit has a shard of its own. The folder must exist and hold
// no checkpoint of that stem. Returns the files in order of writing, the index last.
std::vector<WrittenFile> write_safetensors_sharded(
    const std::filesystem::path& folder, const std::string& stem, std::vector<NamedType> tensors,
    const TensorProducer& producer, const std::map<std::string, std::string>& metadata,
    int64_t max_shard_bytes);

}  // namespace wam
