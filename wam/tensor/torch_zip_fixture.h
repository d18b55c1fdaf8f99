// Makes torch-zip files for tests: small stand-ins with the layout torch.save writes, and the parts
// to make damaged ones. Not linked into the product.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wam/tensor/host_tensor.h"

namespace wam {

// Assembles a pickle opcode by opcode; each call appends.
class PickleAssembler {
 public:
  PickleAssembler() { op("\x80\x02"); }  // protocol 2
  explicit PickleAssembler(std::string start) : bytes_(std::move(start)) {}
  PickleAssembler& op(std::string_view bytes);
  PickleAssembler& text(std::string_view value);  // BINUNICODE
  PickleAssembler& integer(int64_t value);        // LONG1, 8 bytes
  PickleAssembler& real(double value);            // BINFLOAT
  PickleAssembler& global(std::string_view module, std::string_view name);
  PickleAssembler& tuple(const std::vector<int64_t>& values);
  // ('storage', torch.CLASS, key, 'cpu', num_elements) BINPERSID
  PickleAssembler& storage(std::string_view storage_class, std::string_view key,
                           int64_t num_elements);
  // _rebuild_tensor_v2(storage, offset, shape, strides, False, OrderedDict())
  PickleAssembler& tensor(std::string_view storage_class, std::string_view key,
                          int64_t num_elements, int64_t offset, const std::vector<int64_t>& shape,
                          const std::vector<int64_t>& strides);
  const std::string& bytes() const { return bytes_; }
  std::string stop() const { return bytes_ + "."; }

 private:
  std::string bytes_;
};

// "FloatStorage" and so on.
std::string_view torch_storage_class(DType dtype);

using ZipContents = std::vector<std::pair<std::string, std::string>>;  // name, bytes

struct ZipFixtureOptions {
  bool zip64 = false;   // sizes, offsets and the end record in zip64 form
  bool has_crc = true;  // else 0, as with torch.serialization.set_crc32_options(False)
  uint16_t method = 0;  // in the headers only
  std::string comment;
  size_t alignment = 64;  // of the contents
};

// A zip of stored entries.
std::string zip_bytes(const ZipContents& contents, const ZipFixtureOptions& options = {});

// The entries of a torch file around a pickle: data.pkl, byteorder, data/*, version.
ZipContents torch_entries(const std::string& pickle, const std::vector<std::string>& storages,
                          const std::string& folder = "archive");

// A state dict as torch.save writes it; with `key` it is wrapped in {key: ...}.
std::string torch_zip_bytes(const std::map<std::string, HostTensor>& tensors,
                            const std::string& key = "");
void write_torch_zip(const std::filesystem::path& path,
                     const std::map<std::string, HostTensor>& tensors, const std::string& key = "");

}  // namespace wam
