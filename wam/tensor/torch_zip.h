// Reading the zip files that torch.save writes (.pth, .pt, .bin), without running what is in them.
#pragma once

#include <memory>
#include <string>

#include "wam/base/files.h"
#include "wam/tensor/archive.h"

namespace wam {

// Tensors in nested dicts, lists and tuples get the path to them as name, joined with '.': keys of
// dicts (text or integers) and positions in lists. A pickle that is one tensor has it under the
// name "tensor". Other leaves become metadata: None, True, False, numbers and text as Python prints
// them (a root that is one such leaf: "value").
//
// Tensors that share a storage give views of the same bytes; others than row-major ones are copied
// into row-major order; expanded ones (elements repeated by a stride of 0) are refused, as are
// big-endian files, TorchScript programs, and any object but tensors in plain containers.
//
// With `key`, the value under that key of the root dict is taken for the root.
std::unique_ptr<TensorArchive> open_torch_zip(std::shared_ptr<const MappedFile> file,
                                              const std::string& key);

}  // namespace wam
