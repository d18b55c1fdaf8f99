#include "wam/kernels/cpu/column_sums.h"

namespace wam {
namespace {

// [outer, size, inner] -> [outer, inner].
struct Sizes {
  int64_t outer = 1, size = 0, inner = 1;
};

Sizes sizes_of(const KernelSignature& s) {
  const auto dim = static_cast<int>(s.attrs.integer("dim"));
  const Shape& x = s.inputs[0].shape;
  Sizes z{.size = x[dim]};
  for (int i = 0; i < dim; ++i) z.outer *= x[i];
  for (int i = dim + 1; i < x.ndim(); ++i) z.inner *= x[i];
  return z;
}

// Sums along contiguous rows.
template <typename T>
void sum_each_row(const Sizes& z, const T* x, T* y) {
  cpu::parallel_for(z.outer, cpu::row_grain(z.size), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = x + row * z.size;
      y[row] = cpu::ordered_sum<T>(z.size, [from](int64_t i) { return from[i]; });
    }
  });
}

// Sums down columns of each of `outer` matrices.
template <typename T>
void sum_each_matrix(const Sizes& z, const T* x, T* y) {
  const int64_t chunks = (z.inner + cpu::kSumColumns - 1) / cpu::kSumColumns;
  const int64_t grain = cpu::row_grain(cpu::kSumColumns * z.size);
  cpu::parallel_for(z.outer * chunks, grain, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const T* from = x + task / chunks * z.size * z.inner;
      T* to = y + task / chunks * z.inner;
      const int64_t begin = task % chunks * cpu::kSumColumns;
      cpu::sum_some_columns<T>(
          z.size, begin, std::min(z.inner, begin + cpu::kSumColumns),
          [=](int64_t row, int64_t i) { return from[row * z.inner + i]; },
          [=](int64_t i, T sum) { to[i] = sum; });
    }
  });
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Sizes z = sizes_of(s);
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      if (z.inner == 1) return sum_each_row(z, io.in<T>(0), io.out<T>(0));
      sum_each_matrix(z, io.in<T>(0), io.out<T>(0));
    });
  });
}

}  // namespace

extern const KernelDef sum_dim_cpu;
const KernelDef sum_dim_cpu = {.op = "sum_dim", .create = create};

}  // namespace wam
