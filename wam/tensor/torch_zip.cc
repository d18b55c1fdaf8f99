#include "wam/tensor/torch_zip.h"

#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/tensor/archive_error.h"
#include "wam/tensor/mapped_tensor.h"
#include "wam/tensor/torch_flatten.h"
#include "wam/tensor/zip_reader.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDamaged =
    "The file is damaged or was not written by torch.save: fetch it again.";

// A storage's bytes in the file; its checksum is looked at when the first tensor of it is loaded.
struct StorageRecord {
  explicit StorageRecord(const ZipEntry* entry) : entry(entry) {}
  const ZipEntry* entry;
  std::once_flag checked;
};

// A tensor whose every element is known to lie in its storage.
struct PlacedTensor {
  TensorType type;
  std::vector<int64_t> strides;  // elements
  int64_t offset_bytes = 0;      // in the file
  bool is_row_major = true;
  StorageRecord* record = nullptr;
};

bool is_row_major(const PickleTensor& tensor) {
  int64_t stride = 1;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

// Elements of the storage needed from the tensor's first to its last; -1 if that is 2^63 or more.
int64_t extent(const PickleTensor& tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    int64_t step = 0;
    if (tensor.shape[i] == 0) return 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return -1;
    }
  }
  return last == INT64_MAX ? -1 : last + 1;
}

// A dimension of one element has a stride of any value; 0 here, so that sums stay in range.
std::vector<int64_t> used_strides(const PickleTensor& tensor) {
  std::vector<int64_t> strides = tensor.strides;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (tensor.shape[i] == 1) strides[i] = 0;
  }
  return strides;
}

template <typename T>
void gather(const std::byte* source, const PlacedTensor& tensor, std::byte* target) {
  const auto dims = tensor.type.shape.dims();
  std::array<int64_t, Shape::kMaxDims> index{};
  const int64_t count = tensor.type.shape.num_elements();
  int64_t position = 0;  // in the storage, in elements
  for (int64_t i = 0; i < count; ++i) {
    // By bytes: neither side need be aligned in a hostile file.
    std::memcpy(target + i * static_cast<int64_t>(sizeof(T)),
                source + position * static_cast<int64_t>(sizeof(T)), sizeof(T));
    for (size_t d = dims.size(); d-- > 0;) {
      position += tensor.strides[d];
      if (++index[d] < dims[d]) break;
      position -= tensor.strides[d] * dims[d];
      index[d] = 0;
    }
  }
}

HostTensor to_row_major(const std::byte* source, const PlacedTensor& tensor) {
  HostTensor result(tensor.type);
  auto* target = static_cast<std::byte*>(result.data());
  switch (size_bytes(tensor.type.dtype)) {
    case 1:
      gather<uint8_t>(source, tensor, target);
      break;
    case 2:
      gather<uint16_t>(source, tensor, target);
      break;
    case 4:
      gather<uint32_t>(source, tensor, target);
      break;
    default:
      gather<uint64_t>(source, tensor, target);
      break;
  }
  return result;
}

class TorchZip : public TensorArchive {
 public:
  TorchZip(std::shared_ptr<const MappedFile> file, const std::string& key)
      : zip_(std::move(file)), files_{zip_.file()->path()}, folder_(find_folder()) {
    check_byte_order();
    const ZipEntry& pickle = *zip_.find(folder_ + "data.pkl");
    zip_.check_crc(pickle);
    const std::string place = where() + ": data.pkl";
    const PickleDocument document =
        read_pickle(std::as_bytes(std::span(zip_.contents(pickle))), place);
    FlatPickle flat = flatten_pickle(document, key, place);
    for (const auto& [name, tensor] : flat.tensors) {
      tensors_.emplace(name, place_tensor(*tensor, document.storages[tensor->storage], name));
      names_.push_back(name);
    }
    metadata_ = std::move(flat.metadata);
  }

  const std::vector<std::string>& names() const override { return names_; }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }
  const std::vector<fs::path>& files() const override { return files_; }
  std::string_view format() const override { return "torch zip"; }

  const TensorType* find(const std::string& name) const override {
    const auto it = tensors_.find(name);
    return it == tensors_.end() ? nullptr : &it->second.type;
  }

  HostTensor load(const std::string& name) const override {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) throw_no_such_tensor(*this, name);
    const PlacedTensor& tensor = it->second;
    std::call_once(tensor.record->checked, [&] { zip_.check_crc(*tensor.record->entry); });
    const std::string what = "tensor " + quote(name);
    if (tensor.is_row_major)
      return tensor_in_file(zip_.file(), tensor.offset_bytes, tensor.type, what);
    const HostTensor copy = to_row_major(zip_.file()->bytes().data() + tensor.offset_bytes, tensor);
    if (copy.dtype() == DType::kBool)
      check_bools(*zip_.file(), std::as_bytes(copy.as<uint8_t>()), what);
    return copy;
  }

 private:
  std::string where() const { return zip_.file()->path().string(); }

  [[noreturn]] void fail(const std::string& place, const std::string& what,
                         const std::string& got = "", const std::string& expected = "",
                         const std::string& remedy = kDamaged) const {
    throw DataError({.where = where() + (place.empty() ? "" : ": " + place),
                     .what = what,
                     .got = got,
                     .expected = expected,
                     .remedy = remedy});
  }

  // "NAME/", the one folder that all entries lie in.
  std::string find_folder() const {
    for (const auto& [name, entry] : zip_.entries()) {
      const size_t slash = name.find('/');
      if (slash == std::string::npos || name.substr(slash + 1) != "data.pkl") continue;
      const std::string folder = name.substr(0, slash + 1);
      check_folder(folder);
      return folder;
    }
    fail("", "the zip is no torch file", "", "an entry NAME/data.pkl",
         "Give a file written by torch.save or a safetensors file.");
  }

  void check_folder(const std::string& folder) const {
    for (const auto& [name, entry] : zip_.entries()) {
      if (!name.starts_with(folder))
        fail("", "entry outside the torch folder", quote(name), quote(folder));
    }
    if (zip_.find(folder + "constants.pkl") != nullptr) {
      fail("", "a TorchScript program, not a checkpoint", "", "",
           "Load it in PyTorch and save its state_dict().");
    }
  }

  void check_byte_order() const {
    const ZipEntry* entry = zip_.find(folder_ + "byteorder");
    if (entry == nullptr || zip_.contents(*entry) == "little") return;
    fail("byteorder", "byte order not supported", quote(zip_.contents(*entry)), "'little'",
         "Save the file on a little-endian machine.");
  }

  StorageRecord* record_of(const PickleStorage& storage, const std::string& place) {
    const ZipEntry* entry = zip_.find(folder_ + "data/" + storage.key);
    if (entry == nullptr)
      fail(place, "its storage is not in the zip", quote("data/" + storage.key));
    const int64_t bytes = checked_size_bytes(storage.dtype, std::array{storage.num_elements});
    if (bytes != entry->size) {
      fail(place, "size of its storage differs from the pickle's",
           std::to_string(entry->size) + " bytes",
           std::to_string(storage.num_elements) + " elements of " +
               std::string(wam::name(storage.dtype)));
    }
    return &records_.try_emplace(entry->name, entry).first->second;
  }

  PlacedTensor place_tensor(const PickleTensor& tensor, const PickleStorage& storage,
                            const std::string& name) {
    const std::string place = "tensor " + quote(name);
    StorageRecord* record = record_of(storage, place);
    if (tensor.shape.size() != tensor.strides.size())
      fail(place, "shape and strides differ in length");
    if (checked_size_bytes(storage.dtype, tensor.shape) < 0) fail(place, "size too large");
    const TensorType type{storage.dtype, Shape(tensor.shape)};
    const int64_t needed = extent(tensor);
    if (needed < 0 || tensor.offset > storage.num_elements ||
        needed > storage.num_elements - tensor.offset) {
      fail(place, "elements past the end of the storage",
           type.to_string() + " at element " + std::to_string(tensor.offset),
           "within " + std::to_string(storage.num_elements) + " elements");
    }
    if (type.shape.num_elements() > storage.num_elements) {
      fail(place, "repeats elements of its storage (an expanded tensor)", type.to_string(),
           "at most " + std::to_string(storage.num_elements) + " elements",
           "Save it after contiguous() in PyTorch.");
    }
    return {.type = type,
            .strides = used_strides(tensor),
            .offset_bytes = record->entry->offset + tensor.offset * size_bytes(storage.dtype),
            .is_row_major = needed == 0 || is_row_major(tensor),
            .record = record};
  }

  ZipReader zip_;
  std::vector<fs::path> files_;
  std::string folder_;
  std::map<std::string, StorageRecord> records_;  // by entry name
  std::map<std::string, PlacedTensor> tensors_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace

std::unique_ptr<TensorArchive> open_torch_zip(std::shared_ptr<const MappedFile> file,
                                              const std::string& key) {
  return std::make_unique<TorchZip>(std::move(file), key);
}

}  // namespace wam
