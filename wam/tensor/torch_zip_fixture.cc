#include "wam/tensor/torch_zip_fixture.h"

#include <zlib.h>

#include <bit>
#include <cstring>

#include "wam/base/check.h"
#include "wam/base/files.h"

namespace wam {
namespace {

template <typename T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
std::string u16(size_t value) { return little_endian(static_cast<uint16_t>(value)); }
std::string u32(size_t value) { return little_endian(static_cast<uint32_t>(value)); }
std::string u64(size_t value) { return little_endian(static_cast<uint64_t>(value)); }

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.ndim()));
  int64_t stride = 1;
  for (int d = shape.ndim() - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= shape[d];
  }
  return strides;
}

// Assembles the zip: entries first, their directory records aside.
class ZipAssembler {
 public:
  explicit ZipAssembler(const ZipFixtureOptions& options) : options_(options) {}

  void add(const std::string& name, const std::string& bytes) {
    const uLong crc =
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    const std::string shared =
        u16(0) + u16(options_.method) + u32(0) + u32(options_.has_crc ? crc : 0);
    const size_t offset = file_.size();
    const size_t begin = offset + 30 + name.size() + 4;
    const size_t padding = (options_.alignment - begin % options_.alignment) % options_.alignment;
    file_ += "PK\x03\x04" + u16(20) + shared + u32(bytes.size()) + u32(bytes.size()) +
             u16(name.size()) + u16(4 + padding) + name + "FB" + u16(padding) +
             std::string(padding, 'Z') + bytes;
    const std::string wide = u16(1) + u16(24) + u64(bytes.size()) + u64(bytes.size()) + u64(offset);
    directory_ += "PK\x01\x02" + u16(20) + u16(20) + shared + narrow(bytes.size()) +
                  narrow(bytes.size()) + u16(name.size()) + u16(options_.zip64 ? wide.size() : 0) +
                  u16(0) + u16(0) + u16(0) + u32(0) + narrow(offset) + name +
                  (options_.zip64 ? wide : "");
    ++num_entries_;
  }

  std::string finish() const {
    std::string end = file_ + directory_;
    if (options_.zip64) {
      end += "PK\x06\x06" + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(num_entries_) +
             u64(num_entries_) + u64(directory_.size()) + u64(file_.size());
      end += "PK\x06\x07" + u32(0) + u64(file_.size() + directory_.size()) + u32(1);
    }
    const std::string count = options_.zip64 ? u16(0xFFFF) : u16(num_entries_);
    return end + "PK\x05\x06" + u16(0) + u16(0) + count + count + narrow(directory_.size()) +
           narrow(file_.size()) + u16(options_.comment.size()) + options_.comment;
  }

 private:
  std::string narrow(size_t value) const { return u32(options_.zip64 ? 0xFFFFFFFF : value); }

  ZipFixtureOptions options_;
  std::string file_, directory_;
  size_t num_entries_ = 0;
};

}  // namespace

PickleAssembler& PickleAssembler::op(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

PickleAssembler& PickleAssembler::text(std::string_view value) {
  return op("X" + u32(value.size())).op(value);
}

PickleAssembler& PickleAssembler::integer(int64_t value) {
  return op("\x8a\x08" + little_endian(value));
}

PickleAssembler& PickleAssembler::real(double value) {
  return op("G" + little_endian(__builtin_bswap64(std::bit_cast<uint64_t>(value))));
}

PickleAssembler& PickleAssembler::global(std::string_view module, std::string_view name) {
  return op("c").op(module).op("\n").op(name).op("\n");
}

PickleAssembler& PickleAssembler::tuple(const std::vector<int64_t>& values) {
  op("(");
  for (int64_t value : values) integer(value);
  return op("t");
}

PickleAssembler& PickleAssembler::storage(std::string_view storage_class, std::string_view key,
                                          int64_t num_elements) {
  return op("(")
      .text("storage")
      .global("torch", storage_class)
      .text(key)
      .text("cpu")
      .integer(num_elements)
      .op("tQ");
}

PickleAssembler& PickleAssembler::tensor(std::string_view storage_class, std::string_view key,
                                         int64_t num_elements, int64_t offset,
                                         const std::vector<int64_t>& shape,
                                         const std::vector<int64_t>& strides) {
  global("torch._utils", "_rebuild_tensor_v2").op("(").storage(storage_class, key, num_elements);
  integer(offset).tuple(shape).tuple(strides).op("\x89");
  return global("collections", "OrderedDict").op(")RtR");
}

std::string_view torch_storage_class(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "FloatStorage";
    case DType::kBF16:
      return "BFloat16Storage";
    case DType::kF16:
      return "HalfStorage";
    case DType::kF64:
      return "DoubleStorage";
    case DType::kI32:
      return "IntStorage";
    case DType::kI64:
      return "LongStorage";
    case DType::kU8:
      return "ByteStorage";
    case DType::kBool:
      return "BoolStorage";
    case DType::kI8:
      return "CharStorage";
    case DType::kI16:
      return "ShortStorage";
  }
  WAM_CHECK(false) << "no storage class";
  return "";
}

std::string zip_bytes(const ZipContents& contents, const ZipFixtureOptions& options) {
  ZipAssembler zip(options);
  for (const auto& [name, bytes] : contents) zip.add(name, bytes);
  return zip.finish();
}

ZipContents torch_entries(const std::string& pickle, const std::vector<std::string>& storages,
                          const std::string& folder) {
  ZipContents contents = {{folder + "/data.pkl", pickle}, {folder + "/byteorder", "little"}};
  for (size_t i = 0; i < storages.size(); ++i) {
    contents.emplace_back(folder + "/data/" + std::to_string(i), storages[i]);
  }
  contents.emplace_back(folder + "/version", "3\n");
  return contents;
}

std::string torch_zip_bytes(const std::map<std::string, HostTensor>& tensors,
                            const std::string& key) {
  PickleAssembler pickle;
  if (!key.empty()) pickle.op("}").text(key);
  pickle.global("collections", "OrderedDict").op(")R(");
  std::vector<std::string> storages;
  for (const auto& [name, tensor] : tensors) {
    const auto dims = tensor.shape().dims();
    pickle.text(name).tensor(torch_storage_class(tensor.dtype()), std::to_string(storages.size()),
                             tensor.num_elements(), 0, {dims.begin(), dims.end()},
                             row_major_strides(tensor.shape()));
    storages.emplace_back(static_cast<const char*>(tensor.data()),
                          static_cast<size_t>(tensor.size_bytes()));
  }
  pickle.op("u");
  if (!key.empty()) pickle.op("s");
  return zip_bytes(torch_entries(pickle.stop(), storages));
}

void write_torch_zip(const std::filesystem::path& path,
                     const std::map<std::string, HostTensor>& tensors, const std::string& key) {
  write_file_atomic(path, torch_zip_bytes(tensors, key));
}

}  // namespace wam
