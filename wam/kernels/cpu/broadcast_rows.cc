#include <cstring>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t bytes = s.inputs[0].size_bytes();
  const int64_t copies = bytes == 0 ? 0 : s.outputs[0].size_bytes() / bytes;
  return cpu::make_kernel([=](const KernelIo& io) {
    cpu::parallel_for(copies, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, bytes)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          std::memcpy(io.out<std::byte>(0) + i * bytes, io.in<std::byte>(0),
                                      static_cast<size_t>(bytes));
                        }
                      });
  });
}

}  // namespace

extern const KernelDef broadcast_rows_cpu;
const KernelDef broadcast_rows_cpu = {.op = "broadcast_rows", .create = create};

}  // namespace wam
