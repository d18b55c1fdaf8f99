// Reading safetensors: one file, or shards named by an index (huggingface/transformers layout).
#pragma once

#include <memory>

#include "wam/base/files.h"
#include "wam/tensor/archive.h"

namespace wam {

// A single safetensors file. Throws DataError as open_tensor_archive does.
std::unique_ptr<TensorArchive> open_safetensors(std::shared_ptr<const MappedFile> file);

// `index` is a *.safetensors.index.json: {"metadata": {...}, "weight_map": {tensor: file name}}.
// Files are looked for beside it and nowhere else; each must exist, hold exactly the tensors that
// the index says, and every tensor must be listed.
std::unique_ptr<TensorArchive> open_sharded_safetensors(const MappedFile& index);

}  // namespace wam
