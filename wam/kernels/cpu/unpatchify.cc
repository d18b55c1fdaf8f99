#include "wam/kernels/cpu/patches.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cpu::PatchGrid grid = cpu::patch_grid(s.outputs[0].shape, s.attrs);
  WAM_CHECK(s.inputs[0].dtype == s.outputs[0].dtype) << "unpatchify on CPU has one type";
  const bool odd = grid.height % 2 != 0 || grid.width % 2 != 0;
  const int64_t count = s.outputs[0].shape.num_elements();
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const T* x = io.in<T>(0);
      T* y = io.out<T>(0);
      if (odd) std::fill_n(y, count, T{0});
      const int64_t grain = cpu::row_grain(grid.columns() * 4 * grid.channels);
      cpu::parallel_for(grid.rows(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          cpu::visit_patch_row(grid, row, [=](int64_t to, int64_t from) { y[to] = x[from]; });
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef unpatchify_cpu;
const KernelDef unpatchify_cpu = {.op = "unpatchify", .create = create};

}  // namespace wam
