#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

constexpr int64_t kBlock = 16384;

int64_t blocks_of(const KernelSignature& s) {
  return (s.inputs[0].shape.num_elements() + kBlock - 1) / kBlock;
}

// One sum a block, in float64.
int64_t workspace(const KernelSignature& s) {
  return blocks_of(s) * static_cast<int64_t>(sizeof(double));
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t count = s.inputs[0].shape.num_elements(), blocks = blocks_of(s);
  WAM_CHECK(s.inputs[0].dtype == s.outputs[0].dtype) << "sum_squares on CPU reads f32 or f64";
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      auto* sums = static_cast<double*>(io.workspace);
      cpu::parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
        for (int64_t block = first; block < last; ++block) {
          const T* x = io.in<T>(0) + block * kBlock;
          const int64_t size = std::min(kBlock, count - block * kBlock);
          sums[block] = cpu::ordered_sum<double>(size, [x](int64_t i) {
            const auto value = static_cast<double>(x[i]);
            return value * value;
          });
        }
      });
      double total = 0;
      for (int64_t block = 0; block < blocks; ++block) total += sums[block];
      *io.out<T>(0) = static_cast<T>(total);
    });
  });
}

}  // namespace

extern const KernelDef sum_squares_cpu;
const KernelDef sum_squares_cpu = {
    .op = "sum_squares", .create = create, .workspace_bytes = workspace};

}  // namespace wam
