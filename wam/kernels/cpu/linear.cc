#include "wam/kernels/cpu/gemm.h"
#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

// Rows of x, N and K of the weight, and how it is stored.
struct Sizes {
  int64_t rows, n, k;
  bool kn;
  int64_t weight_stride() const { return kn ? n : k; }
};

Sizes sizes_with_weight(const KernelSignature& s) {
  const bool kn = s.attrs.flag("kn");
  const Shape& w = s.inputs[1].shape;
  return {s.inputs[0].shape.num_rows(), kn ? w[1] : w[0], kn ? w[0] : w[1], kn};
}

template <typename T>
void add_bias(T* y, const T* bias, int64_t rows, int64_t n) {
  cpu::parallel_for(rows, cpu::row_grain(n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < n; ++i) y[row * n + i] += bias[i];
    }
  });
}

std::unique_ptr<Kernel> create_linear(const KernelSignature& s) {
  const Sizes z = sizes_with_weight(s);
  const bool has_bias = s.inputs.size() == 3;
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      cpu::gemm({z.rows, z.n, z.k, false, !z.kn}, T{1}, io.in<T>(0), z.k, io.in<T>(1),
                z.weight_stride(), T{0}, io.out<T>(0), z.n);
      if (has_bias) add_bias(io.out<T>(0), io.in<T>(2), z.rows, z.n);
    });
  });
}

std::unique_ptr<Kernel> create_dgrad(const KernelSignature& s) {
  const Sizes z = sizes_with_weight(s);
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      cpu::gemm({z.rows, z.k, z.n, false, z.kn}, T{1}, io.in<T>(0), z.n, io.in<T>(1),
                z.weight_stride(), T{0}, io.out<T>(0), z.k);
    });
  });
}

// db = acc + column sums of dy, in the block order of sum_rows.
template <typename T>
void bias_grad(const T* dy, const T* acc, int64_t rows, int64_t n, T* db) {
  constexpr int64_t kBlockRows = 64;
  cpu::parallel_for(n, 64, [&](int64_t begin, int64_t end) {
    T total[64] = {};
    for (int64_t block = 0; block < rows; block += kBlockRows) {
      T partial[64] = {};
      for (int64_t row = block; row < std::min(rows, block + kBlockRows); ++row) {
        for (int64_t i = begin; i < end; ++i) partial[i - begin] += dy[row * n + i];
      }
      for (int64_t i = 0; i < end - begin; ++i) total[i] += partial[i];
    }
    for (int64_t i = begin; i < end; ++i) {
      db[i] = acc == nullptr ? total[i - begin] : acc[i] + total[i - begin];
    }
  });
}

std::unique_ptr<Kernel> create_wgrad(const KernelSignature& s) {
  const bool kn = s.attrs.flag("kn"), has_bias = s.attrs.flag("bias");
  const bool accumulate = s.attrs.flag("accumulate");
  const Sizes z{s.inputs[0].shape.num_rows(), s.inputs[0].shape[-1], s.inputs[1].shape[-1], kn};
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const T *dy = io.in<T>(0), *x = io.in<T>(1);
      T* dw = io.out<T>(0);
      if (accumulate && io.inputs[2] != io.outputs[0]) {
        std::copy_n(io.in<T>(2), z.n * z.k, dw);
      }
      const T beta = accumulate ? T{1} : T{0};
      if (kn) {
        cpu::gemm({z.k, z.n, z.rows, true, false}, T{1}, x, z.k, dy, z.n, beta, dw, z.n);
      } else {
        cpu::gemm({z.n, z.k, z.rows, true, false}, T{1}, dy, z.n, x, z.k, beta, dw, z.k);
      }
      if (has_bias) bias_grad(dy, accumulate ? io.in<T>(3) : nullptr, z.rows, z.n, io.out<T>(1));
    });
  });
}

}  // namespace

extern const KernelDef linear_cpu, linear_dgrad_cpu, linear_wgrad_cpu;
const KernelDef linear_cpu = {.op = "linear", .create = create_linear};
const KernelDef linear_dgrad_cpu = {.op = "linear_dgrad", .create = create_dgrad};
const KernelDef linear_wgrad_cpu = {.op = "linear_wgrad", .create = create_wgrad};

}  // namespace wam
