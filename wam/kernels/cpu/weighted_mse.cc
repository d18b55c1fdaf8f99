#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

struct Sizes {
  int64_t rows, length, width, table_rows;
  bool mask;
  double scale;
  // Place of a row's weight.
  int64_t weight_at(const int32_t* index, int64_t row) const {
    return row / length * table_rows + index[row % length];
  }
};

// `first`: place of pred among the inputs.
Sizes sizes_of(const KernelSignature& s, size_t first) {
  const Shape& pred = s.inputs[first].shape;
  WAM_CHECK(s.inputs[first + 1].dtype == s.inputs[first].dtype)
      << "weighted_mse has one type on CPU";
  return {pred[0] * pred[1],
          pred[1],
          pred[2],
          s.inputs[first + 2].shape[1],
          s.inputs.size() == first + 5,
          s.attrs.real("scale")};
}

template <typename T>
T row_error(const T* pred, const T* target, const T* mask, int64_t n) {
  if (mask == nullptr) {
    return cpu::ordered_sum<T>(n, [=](int64_t i) {
      const T d = pred[i] - target[i];
      return d * d;
    });
  }
  return cpu::ordered_sum<T>(n, [=](int64_t i) {
    const T d = pred[i] - target[i];
    return mask[i] * (d * d);
  });
}

// One sum a row.
int64_t workspace(const KernelSignature& s) {
  return s.inputs[0].shape[0] * s.inputs[0].shape[1] * size_bytes(s.inputs[0].dtype);
}

// The sums of rows are weighted and added in float64, in order of rows.
std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Sizes z = sizes_of(s, 0);
  return cpu::dispatch_float(s.inputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const int32_t* index = io.in<int32_t>(3);
      cpu::check_index(index, z.length, z.table_rows, "weighted_mse");
      T* errors = static_cast<T*>(io.workspace);
      cpu::parallel_for(z.rows, cpu::row_grain(z.width), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t at = row * z.width;
          errors[row] = row_error(io.in<T>(0) + at, io.in<T>(1) + at,
                                  z.mask ? io.in<T>(4) + at : nullptr, z.width);
        }
      });
      double sum = 0;
      for (int64_t row = 0; row < z.rows; ++row) {
        sum += static_cast<double>(io.in<T>(2)[z.weight_at(index, row)]) *
               static_cast<double>(errors[row]);
      }
      *io.out<T>(0) = static_cast<T>(z.scale * sum);
    });
  });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const Sizes z = sizes_of(s, 1);
  return cpu::dispatch_float(s.inputs[1].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const int32_t* index = io.in<int32_t>(4);
      cpu::check_index(index, z.length, z.table_rows, "weighted_mse_grad");
      const double factor = 2 * z.scale * static_cast<double>(*io.in<T>(0));
      cpu::parallel_for(z.rows, cpu::row_grain(z.width), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t at = row * z.width;
          const T *pred = io.in<T>(1) + at, *target = io.in<T>(2) + at;
          const T* mask = z.mask ? io.in<T>(5) + at : nullptr;
          T* out = io.out<T>(0) + at;
          const auto weight = static_cast<double>(io.in<T>(3)[z.weight_at(index, row)]);
          const T w = static_cast<T>(factor * weight);
          if (mask == nullptr) {
#pragma GCC ivdep
            for (int64_t i = 0; i < z.width; ++i) out[i] = w * (pred[i] - target[i]);
          } else {
#pragma GCC ivdep
            for (int64_t i = 0; i < z.width; ++i) out[i] = w * (mask[i] * (pred[i] - target[i]));
          }
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef weighted_mse_cpu, weighted_mse_grad_cpu;
const KernelDef weighted_mse_cpu = {
    .op = "weighted_mse", .create = create, .workspace_bytes = workspace};
const KernelDef weighted_mse_grad_cpu = {.op = "weighted_mse_grad", .create = create_grad};

}  // namespace wam
