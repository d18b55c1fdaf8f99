#include "wam/kernels/cpu/rms_norm.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t n = s.inputs[0].shape[-1], rows = s.inputs[0].shape.num_rows();
  const double eps = s.attrs.real("eps");
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      cpu::parallel_for(rows, cpu::row_grain(n), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          cpu::rms_row(io.in<T>(0) + row * n, io.in<T>(1), n, eps, io.out<T>(0) + row * n);
        }
      });
    });
  });
}

// Partial sums of the weight's gradient: [blocks, D].
int64_t grad_workspace(const KernelSignature& s) {
  const Shape& x = s.inputs[1].shape;
  return cpu::rms_blocks(x.num_rows()) * x[-1] * size_bytes(s.outputs[0].dtype);
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const int64_t n = s.inputs[1].shape[-1], rows = s.inputs[1].shape.num_rows();
  const double eps = s.attrs.real("eps");
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      T* partials = static_cast<T*>(io.workspace);
      const int64_t blocks = cpu::rms_blocks(rows);
      cpu::parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
        for (int64_t block = first; block < last; ++block) {
          T* sums = partials + block * n;
          std::fill_n(sums, n, T{0});
          const int64_t end = std::min(rows, (block + 1) * cpu::kRmsBlockRows);
          for (int64_t row = block * cpu::kRmsBlockRows; row < end; ++row) {
            cpu::rms_grad_row(io.in<T>(0) + row * n, io.in<T>(1) + row * n, io.in<T>(2), n, eps,
                              io.out<T>(0) + row * n, sums);
          }
        }
      });
      cpu::sum_blocks(partials, blocks, n, n, io.out<T>(1));
    });
  });
}

}  // namespace

extern const KernelDef rms_norm_cpu, rms_norm_grad_cpu;
const KernelDef rms_norm_cpu = {.op = "rms_norm", .create = create};
const KernelDef rms_norm_grad_cpu = {
    .op = "rms_norm_grad", .create = create_grad, .workspace_bytes = grad_workspace};

}  // namespace wam
