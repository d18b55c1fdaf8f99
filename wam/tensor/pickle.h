// Reads the pickles that torch.save writes for tensors in plain containers, and nothing else: no
// code is looked up or run, an object of any other class is an error that names it. Opcodes:
// Python's pickletools, protocols 2 to 5.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wam/tensor/dtype.h"

namespace wam {

enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kList,
  kTuple,
  kDict,
  kGlobal,
  kStorage,
  kTensor
};

// Containers are held by the document and named by position, so that a pickle that contains itself
// neither leaks nor recurses. `bits` is the bool, the integer, the float's bits, or that position.
struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  int64_t bits = 0;
};

// The flat array of elements that tensors are cut from.
struct PickleStorage {
  DType dtype = DType::kF32;
  std::string key;  // entry "data/KEY" of the zip
  int64_t num_elements = 0;
};

// Sizes are not checked here beyond being integers that are not negative.
struct PickleTensor {
  size_t storage = 0;                   // position in PickleDocument::storages
  int64_t offset = 0;                   // elements
  std::vector<int64_t> shape, strides;  // elements
};

struct PickleDocument {
  PickleValue root;
  std::vector<std::string> texts;                                       // UTF-8
  std::vector<std::vector<PickleValue>> sequences;                      // lists and tuples
  std::vector<std::vector<std::pair<PickleValue, PickleValue>>> dicts;  // in order of insertion
  std::vector<PickleStorage> storages;
  std::vector<PickleTensor> tensors;

  const std::string& text(PickleValue v) const { return texts[static_cast<size_t>(v.bits)]; }
  const std::vector<PickleValue>& sequence(PickleValue v) const {
    return sequences[static_cast<size_t>(v.bits)];
  }
  const auto& dict(PickleValue v) const { return dicts[static_cast<size_t>(v.bits)]; }
  const PickleTensor& tensor(PickleValue v) const { return tensors[static_cast<size_t>(v.bits)]; }
};

// Throws DataError with `where`, the byte and the reason for anything not allowed. Memory is
// bounded by limits on the length, the number of objects and the depth of the stack. Attributes set
// on an OrderedDict (a module's version numbers) are read and dropped, as they hold no values.
PickleDocument read_pickle(std::span<const std::byte> bytes, const std::string& where);

}  // namespace wam
