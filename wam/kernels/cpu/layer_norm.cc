#include "wam/kernels/cpu/layer_norm.h"

#include "wam/kernels/cpu/rms_norm.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t n = s.inputs[0].shape[-1], rows = s.inputs[0].shape.num_rows();
  const bool affine = s.attrs.flag("affine");
  const double eps = s.attrs.real("eps");
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const T *w = affine ? io.in<T>(1) : nullptr, *b = affine ? io.in<T>(2) : nullptr;
      cpu::parallel_for(rows, cpu::row_grain(n), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* x = io.in<T>(0) + row * n;
          T *y = io.out<T>(0) + row * n, *stats_out = io.out<T>(1) + row * 2;
          const auto stats = cpu::layer_stats(x, n, eps);
          if (affine) {
#pragma GCC ivdep
            for (int64_t i = 0; i < n; ++i) y[i] = cpu::normalized(x[i], stats) * w[i] + b[i];
          } else {
#pragma GCC ivdep
            for (int64_t i = 0; i < n; ++i) y[i] = cpu::normalized(x[i], stats);
          }
          stats_out[0] = stats.mean;
          stats_out[1] = stats.rstd;
        }
      });
    });
  });
}

int64_t blocks_of(int64_t rows) {
  return (rows + cpu::kLayerNormBlockRows - 1) / cpu::kLayerNormBlockRows;
}

// Sums of the weight's and bias's gradients: [blocks, 2, D].
int64_t grad_workspace(const KernelSignature& s) {
  if (!s.attrs.flag("affine")) return 0;
  const Shape& x = s.inputs[1].shape;
  return blocks_of(x.num_rows()) * 2 * x[-1] * size_bytes(s.outputs[0].dtype);
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const int64_t n = s.inputs[1].shape[-1], rows = s.inputs[1].shape.num_rows();
  const int64_t blocks = blocks_of(rows);
  const bool affine = s.attrs.flag("affine");
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const T* w = affine ? io.in<T>(3) : nullptr;
      T* partials = static_cast<T*>(io.workspace);
      const auto row_grad = [&](int64_t row, T* sums) {
        const T *dy = io.in<T>(0) + row * n, *x = io.in<T>(1) + row * n;
        const T* saved = io.in<T>(2) + row * 2;
        const cpu::RowStats<T> stats{saved[0], saved[1]};
        T* dx = io.out<T>(0) + row * n;
        const auto store = [dx](int64_t i, T value) { dx[i] = value; };
        if (affine) {
          cpu::add_affine_grads(dy, x, stats, n, sums);
          cpu::layer_grad_row([dy, w](int64_t i) { return dy[i] * w[i]; }, x, stats, n, store);
        } else {
          cpu::layer_grad_row([dy](int64_t i) { return dy[i]; }, x, stats, n, store);
        }
      };
      cpu::parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
        for (int64_t block = first; block < last; ++block) {
          T* sums = affine ? partials + block * 2 * n : nullptr;
          if (affine) std::fill_n(sums, 2 * n, T{0});
          const int64_t begin = block * cpu::kLayerNormBlockRows;
          const int64_t end = std::min(rows, begin + cpu::kLayerNormBlockRows);
          for (int64_t row = begin; row < end; ++row) row_grad(row, sums);
        }
      });
      if (!affine) return;
      cpu::sum_blocks(partials, blocks, 2 * n, n, io.out<T>(1));
      cpu::sum_blocks(partials + n, blocks, 2 * n, n, io.out<T>(2));
    });
  });
}

}  // namespace

extern const KernelDef layer_norm_cpu, layer_norm_grad_cpu;
const KernelDef layer_norm_cpu = {.op = "layer_norm", .create = create};
const KernelDef layer_norm_grad_cpu = {
    .op = "layer_norm_grad", .create = create_grad, .workspace_bytes = grad_workspace};

}  // namespace wam
