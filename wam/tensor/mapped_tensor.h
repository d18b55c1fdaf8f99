// Tensors whose bytes lie in a mapped file.
#pragma once

#include <memory>
#include <string>

#include "wam/base/files.h"
#include "wam/tensor/host_tensor.h"

namespace wam {

// Bytes of a tensor of `dtype` with these sizes (negative ones are not allowed), or -1 if that is
// 2^63 or more or there are more dimensions than Shape holds: for sizes not yet trusted.
int64_t checked_size_bytes(DType dtype, std::span<const int64_t> dims);

// Throws DataError naming file and `what` if a byte is neither 0 nor 1: reading such a bool is
// undefined.
void check_bools(const MappedFile& file, std::span<const std::byte> bytes, const std::string& what);

// The tensor at `offset` of the file: a view that keeps the file mapped, or a copy if the address
// is not a multiple of the element size. The range must lie in the file (checked, our bug). Bools
// are checked as above.
HostTensor tensor_in_file(const std::shared_ptr<const MappedFile>& file, int64_t offset,
                          const TensorType& type, const std::string& what);

// Brings a tensor's bytes into memory, as one long read where they lie in a mapped file: faults page by
// page would read little at a time. Returns when they are there.
void read_whole(const HostTensor& tensor);

}  // namespace wam
