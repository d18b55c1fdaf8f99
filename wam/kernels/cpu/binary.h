// `ivdep`: an output that lies exactly in an input's place carries nothing from one element to the
// next, so in-place calls run vectorised too.
// Elementwise ops of two inputs, the second possibly a suffix of the first: shared by add, sub,
// mul.
#pragma once

#include "wam/kernels/cpu/support.h"

namespace wam::cpu {

template <typename F>
std::unique_ptr<Kernel> make_binary(const KernelSignature& s, F f) {
  const int64_t period = s.inputs[1].shape.num_elements();
  const int64_t rows = period == 0 ? 0 : s.inputs[0].shape.num_elements() / period;
  return dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return make_kernel([=](const KernelIo& io) {
      const T *x = io.in<T>(0), *y = io.in<T>(1);
      T* out = io.out<T>(0);
      if (rows == 1) {
        parallel_for(period, 16384, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
          for (int64_t i = begin; i < end; ++i) out[i] = f(x[i], y[i]);
        });
        return;
      }
      parallel_for(rows, row_grain(period), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
#pragma GCC ivdep
          for (int64_t i = 0; i < period; ++i) out[row * period + i] = f(x[row * period + i], y[i]);
        }
      });
    });
  });
}

// One input, one output of the same size.
template <typename F>
std::unique_ptr<Kernel> make_unary(const KernelSignature& s, F f) {
  const int64_t count = s.outputs[0].shape.num_elements();
  return dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return make_kernel([=](const KernelIo& io) {
      const T* x = io.in<T>(0);
      T* out = io.out<T>(0);
      parallel_for(count, 16384, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) out[i] = f(x[i]);
      });
    });
  });
}

}  // namespace wam::cpu
