#include "wam/tensor/mapped_tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "wam/base/check.h"

namespace wam {

int64_t checked_size_bytes(DType dtype, std::span<const int64_t> dims) {
  if (dims.size() > Shape::kMaxDims) return -1;
  // A zero anywhere makes the tensor empty, however large the other sizes are; those must still be
  // sizes a Shape takes, so the product is formed without the zeros.
  int64_t bytes = size_bytes(dtype);
  bool has_zero = false;
  for (int64_t dim : dims) {
    if (dim < 0) return -1;
    has_zero |= dim == 0;
    if (dim != 0 && __builtin_mul_overflow(bytes, dim, &bytes)) return -1;
  }
  return has_zero ? 0 : bytes;
}

void check_bools(const MappedFile& file, std::span<const std::byte> bytes,
                 const std::string& what) {
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b <= std::byte{1}; }))
    return;
  throw DataError({.where = file.path().string(),
                   .what = what + " holds a bool that is neither 0 nor 1",
                   .remedy = "The file is damaged: fetch it again."});
}

HostTensor tensor_in_file(const std::shared_ptr<const MappedFile>& file, int64_t offset,
                          const TensorType& type, const std::string& what) {
  const int64_t size = type.size_bytes();
  const auto file_size = static_cast<int64_t>(file->size());
  WAM_CHECK(offset >= 0 && size >= 0 && offset <= file_size && size <= file_size - offset) << what;
  if (size == 0) return HostTensor(type);
  const std::byte* data = file->bytes().data() + offset;
  if (type.dtype == DType::kBool) check_bools(*file, {data, static_cast<size_t>(size)}, what);
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(size_bytes(type.dtype)) != 0) {
    HostTensor copy(type);
    std::memcpy(copy.data(), data, static_cast<size_t>(size));
    return copy;
  }
  return {type, std::shared_ptr<std::byte>(file, const_cast<std::byte*>(data))};
}

void read_whole(const HostTensor& tensor) {
  constexpr uintptr_t kPage = 4096;
  // What the system asks of the disk at once is bounded; longer advice would be cut.
  constexpr uintptr_t kStretch = uintptr_t{8} << 20;
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data()) / kPage * kPage;
  const uintptr_t end = reinterpret_cast<uintptr_t>(tensor.data()) + static_cast<uintptr_t>(tensor.size_bytes());
  for (uintptr_t at = begin; at < end; at += kStretch)
    madvise(reinterpret_cast<void*>(at), std::min(kStretch, end - at), MADV_WILLNEED);
  const auto* bytes = static_cast<const volatile std::byte*>(tensor.data());
  for (int64_t at = 0; at < tensor.size_bytes(); at += int64_t{kPage}) (void)bytes[at];
}

}  // namespace wam
