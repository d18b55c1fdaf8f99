#include <cstring>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t count = s.inputs[0].shape.num_elements();
  const int64_t rows = s.inputs[1].shape[0];
  const int64_t bytes = s.inputs[1].shape[1] * size_bytes(s.inputs[1].dtype);
  return cpu::make_kernel([=](const KernelIo& io) {
    const int32_t* ids = io.in<int32_t>(0);
    cpu::check_index(ids, count, rows, "embedding");
    cpu::parallel_for(count, cpu::row_grain(bytes / 4), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::memcpy(io.out<std::byte>(0) + i * bytes, io.in<std::byte>(1) + ids[i] * bytes,
                    static_cast<size_t>(bytes));
      }
    });
  });
}

}  // namespace

extern const KernelDef embedding_cpu;
const KernelDef embedding_cpu = {.op = "embedding", .create = create};

}  // namespace wam
