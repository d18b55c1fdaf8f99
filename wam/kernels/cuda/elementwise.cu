// One thread takes eight consecutive elements; bytes moved: each tensor once.
#include "wam/kernels/cuda/elementwise.h"

#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kThreads = 256;

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

constexpr float kTwice = 1.5957691216057307f,
                kCubic = 0.044715f;  // 2 sqrt(2 / pi); GELU's tanh form

struct Scale {
  float factor, offset;
  __device__ float operator()(float x) const { return factor * x + offset; }
};
struct Silu {
  __device__ float operator()(float x) const { return x * sigmoid(x); }
};
// x/2 (1 + tanh u) = x sigmoid(2u), which does not cancel for negative x.
struct GeluTanh {
  __device__ float operator()(float x) const {
    return x * sigmoid(kTwice * (x + kCubic * x * x * x));
  }
};
// The same by the special function unit: its errors vanish in a rounding to bf16.
struct GeluTanhFast {
  __device__ float operator()(float x) const {
    return __fdividef(x, 1.0f + __expf(-kTwice * (x + kCubic * x * x * x)));
  }
};
struct GeluErf {
  __device__ float operator()(float x) const {
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
  }
};
struct Relu {
  __device__ float operator()(float x) const { return x < 0.0f ? 0.0f : x; }
};

struct Add {
  __device__ float operator()(float x, float y) const { return x + y; }
};
struct Sub {
  __device__ float operator()(float x, float y) const { return x - y; }
};
struct Mul {
  __device__ float operator()(float x, float y) const { return x * y; }
};
struct SiluGrad {
  __device__ float operator()(float dy, float x) const {
    const float s = sigmoid(x);
    return dy * (s + x * s * (1.0f - s));
  }
};
struct GeluTanhGrad {
  __device__ float operator()(float dy, float x) const {
    const float s = sigmoid(kTwice * (x + kCubic * x * x * x));
    const float slope = kTwice * (1.0f + 3.0f * kCubic * x * x);
    return dy * (s + x * s * (1.0f - s) * slope);
  }
};
struct GeluErfGrad {
  __device__ float operator()(float dy, float x) const {
    const float cdf = 0.5f * (1.0f + erff(x * 0.70710678118654752f));
    return dy * (cdf + x * (0.39894228040143268f * expf(-0.5f * x * x)));
  }
};
struct ReluGrad {
  __device__ float operator()(float dy, float x) const { return x > 0.0f ? dy : 0.0f; }
};

template <typename T, bool kVector, typename F>
__global__ void __launch_bounds__(kThreads) unary_kernel(F f, const T* x, T* y, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x * 8;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 8; i < count; i += step) {
    float v[8];
    load8<T, kVector>(x, i, count, v);
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = f(v[k]);
    store8<T, kVector>(y, i, count, v);
  }
}

template <typename T, bool kVector, typename F>
__global__ void __launch_bounds__(kThreads)
    binary_kernel(F f, const T* x, const T* y, T* out, int64_t count, int64_t period) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x * 8;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 8; i < count; i += step) {
    float a[8], b[8];
    load8<T, kVector>(x, i, count, a);
    if constexpr (kVector) {
      load8<T, true>(y, period == count ? i : i % period, period, b);
    } else {
#pragma unroll
      for (int k = 0; k < 8; ++k) b[k] = i + k < count ? wide(y[(i + k) % period]) : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) a[k] = f(a[k], b[k]);
    store8<T, kVector>(out, i, count, a);
  }
}

template <typename From, typename To, bool kVector>
__global__ void __launch_bounds__(kThreads) cast_kernel(const From* x, To* y, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x * 8;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 8; i < count; i += step) {
    float v[8];
    load8<From, kVector>(x, i, count, v);
    store8<To, kVector>(y, i, count, v);
  }
}

template <typename F>
void run_unary(const UnaryArgs& a, F f, const void* x, void* y, cudaStream_t stream) {
  const unsigned grid = grid_for(a.count, kThreads * 8);
  dispatch_float(a.dtype, [&]<typename T>() {
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    if (a.count % 8 == 0 && aligned16(x) && aligned16(y)) {
      unary_kernel<T, true><<<grid, kThreads, 0, stream>>>(f, from, to, a.count);
    } else {
      unary_kernel<T, false><<<grid, kThreads, 0, stream>>>(f, from, to, a.count);
    }
  });
  check_launch("unary");
}

template <typename F>
void run_binary(const BinaryArgs& a, F f, const void* x, const void* y, void* out,
                cudaStream_t stream) {
  const unsigned grid = grid_for(a.count, kThreads * 8);
  dispatch_float(a.dtype, [&]<typename T>() {
    const T *left = static_cast<const T*>(x), *right = static_cast<const T*>(y);
    T* to = static_cast<T*>(out);
    if (a.period % 8 == 0 && aligned16(x) && aligned16(y) && aligned16(out)) {
      binary_kernel<T, true><<<grid, kThreads, 0, stream>>>(f, left, right, to, a.count, a.period);
    } else {
      binary_kernel<T, false><<<grid, kThreads, 0, stream>>>(f, left, right, to, a.count, a.period);
    }
  });
  check_launch("binary");
}

}  // namespace

void launch_unary(const UnaryArgs& a, const void* x, void* y, cudaStream_t stream) {
  if (a.count == 0) return;
  switch (a.op) {
    case Unary::kScale:
      return run_unary(a, Scale{a.factor, a.offset}, x, y, stream);
    case Unary::kSilu:
      return run_unary(a, Silu{}, x, y, stream);
    case Unary::kGeluTanh:
      if (a.dtype == DType::kBF16) return run_unary(a, GeluTanhFast{}, x, y, stream);
      return run_unary(a, GeluTanh{}, x, y, stream);
    case Unary::kGeluErf:
      return run_unary(a, GeluErf{}, x, y, stream);
    case Unary::kRelu:
      return run_unary(a, Relu{}, x, y, stream);
  }
}

void launch_binary(const BinaryArgs& a, const void* x, const void* y, void* out,
                   cudaStream_t stream) {
  if (a.count == 0) return;
  switch (a.op) {
    case Binary::kAdd:
      return run_binary(a, Add{}, x, y, out, stream);
    case Binary::kSub:
      return run_binary(a, Sub{}, x, y, out, stream);
    case Binary::kMul:
      return run_binary(a, Mul{}, x, y, out, stream);
    case Binary::kSiluGrad:
      return run_binary(a, SiluGrad{}, x, y, out, stream);
    case Binary::kGeluTanhGrad:
      return run_binary(a, GeluTanhGrad{}, x, y, out, stream);
    case Binary::kGeluErfGrad:
      return run_binary(a, GeluErfGrad{}, x, y, out, stream);
    case Binary::kReluGrad:
      return run_binary(a, ReluGrad{}, x, y, out, stream);
  }
}

void launch_cast(DType from, DType to, int64_t count, const void* x, void* y, cudaStream_t stream) {
  if (count == 0) return;
  const unsigned grid = grid_for(count, kThreads * 8);
  dispatch_float(from, [&]<typename From>() {
    dispatch_float(to, [&]<typename To>() {
      if (count % 8 == 0 && aligned16(x) && aligned16(y)) {
        cast_kernel<From, To, true><<<grid, kThreads, 0, stream>>>(static_cast<const From*>(x),
                                                                   static_cast<To*>(y), count);
      } else {
        cast_kernel<From, To, false><<<grid, kThreads, 0, stream>>>(static_cast<const From*>(x),
                                                                    static_cast<To*>(y), count);
      }
    });
  });
  check_launch("cast");
}

}  // namespace wam::cuda
