#include <cstring>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

// Zeros first, then the rows: every row is put at most once, so the order does not matter.
std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape &from = s.inputs[0].shape, &to = s.outputs[0].shape;
  const int64_t batch = to[0], from_rows = from[1], to_rows = to[1];
  const int64_t total = s.outputs[0].size_bytes();
  const int64_t bytes = total == 0 ? 0 : total / (batch * to_rows);
  return cpu::make_kernel([=](const KernelIo& io) {
    const int32_t* index = io.in<int32_t>(1);
    cpu::check_index(index, from_rows, to_rows, "put_rows");
    std::byte* y = io.out<std::byte>(0);
    cpu::parallel_for(total, 1 << 18, [&](int64_t begin, int64_t end) {
      std::memset(y + begin, 0, static_cast<size_t>(end - begin));
    });
    if (bytes == 0) return;
    cpu::parallel_for(batch * from_rows, cpu::row_grain(bytes / 4), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / from_rows * to_rows + index[i % from_rows];
        std::memcpy(y + row * bytes, io.in<std::byte>(0) + i * bytes, static_cast<size_t>(bytes));
      }
    });
  });
}

}  // namespace

extern const KernelDef put_rows_cpu;
const KernelDef put_rows_cpu = {.op = "put_rows", .create = create};

}  // namespace wam
