// One thread takes eight elements; bytes moved an element: split master 24 + the gradient, f32
// master the same. A step's numbers are worked out in f64 by each block and rounded once, as on
// CPU.
#include "wam/kernels/cuda/optimizer.h"

#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kThreads = 256;
enum Place { kLr, kCorrection1, kCorrection2, kClipFactor, kSkip, kWeightDecay };

struct Factors {
  float clip, decay, beta2, one_minus_beta1, one_minus_beta2, root_correction2, step, eps;
};

__device__ Factors make_factors(const AdamwArgs& a) {
  const double lr = a.scalars[kLr];
  return {a.scalars[kClipFactor],
          static_cast<float>(1 - lr * static_cast<double>(a.scalars[kWeightDecay])),
          static_cast<float>(a.beta2),
          static_cast<float>(1 - a.beta1),
          static_cast<float>(1 - a.beta2),
          static_cast<float>(sqrt(static_cast<double>(a.scalars[kCorrection2]))),
          static_cast<float>(lr / static_cast<double>(a.scalars[kCorrection1])),
          static_cast<float>(a.eps)};
}

__device__ __forceinline__ float join(uint16_t high, int16_t low) {
  return __uint_as_float((static_cast<uint32_t>(high) << 16) + static_cast<uint32_t>(int32_t{low}));
}
__device__ __forceinline__ void split(float x, uint16_t& high, int16_t& low) {
  const uint32_t bits = __float_as_uint(x), rounded = (bits + 0x8000u) >> 16;
  high = static_cast<uint16_t>(rounded);
  low = static_cast<int16_t>(bits - (rounded << 16));
}

// No contraction: the same roundings as the CPU twin.
__device__ __forceinline__ void step_one(const Factors& f, float g, float& p, float& m, float& v) {
  g = __fmul_rn(g, f.clip);
  m = __fadd_rn(m, __fmul_rn(f.one_minus_beta1, __fsub_rn(g, m)));
  v = __fadd_rn(__fmul_rn(v, f.beta2), __fmul_rn(__fmul_rn(f.one_minus_beta2, g), g));
  const float denominator = __fadd_rn(__fdiv_rn(__fsqrt_rn(v), f.root_correction2), f.eps);
  p = __fsub_rn(__fmul_rn(p, f.decay), __fdiv_rn(__fmul_rn(f.step, m), denominator));
}

template <typename G, bool kSplit, bool kVector>
__global__ void __launch_bounds__(kThreads) adamw_kernel(AdamwArgs a) {
  __shared__ Factors shared;
  __shared__ bool skip;
  if (threadIdx.x == 0) {
    shared = make_factors(a);
    skip = a.scalars[kSkip] != 0;
  }
  __syncthreads();
  const Factors f = shared;
  const int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 8;
  if (i >= a.count) return;
  float g[8], p[8], m[8], v[8];
  load8<float, kVector>(a.m, i, a.count, m);
  load8<float, kVector>(a.v, i, a.count, v);
  load8<G, kVector>(static_cast<const G*>(a.g), i, a.count, g);
  Pack<uint16_t> high{};
  Pack<int16_t> low{};
  if constexpr (kSplit) {
    const auto* from_high = static_cast<const uint16_t*>(a.high);
    const auto* from_low = static_cast<const int16_t*>(a.low);
    if constexpr (kVector) {
      high = *reinterpret_cast<const Pack<uint16_t>*>(from_high + i);
      low = *reinterpret_cast<const Pack<int16_t>*>(from_low + i);
    } else {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        if (i + k >= a.count) continue;
        high.v[k] = from_high[i + k];
        low.v[k] = from_low[i + k];
      }
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) p[k] = join(high.v[k], low.v[k]);
  } else {
    load8<float, kVector>(a.p, i, a.count, p);
  }
  if (!skip) {
#pragma unroll
    for (int k = 0; k < 8; ++k) step_one(f, g[k], p[k], m[k], v[k]);
  }
  store8<float, kVector>(a.m_out, i, a.count, m);
  store8<float, kVector>(a.v_out, i, a.count, v);
  if constexpr (kSplit) {
#pragma unroll
    for (int k = 0; k < 8; ++k) split(p[k], high.v[k], low.v[k]);
    auto* to_high = static_cast<uint16_t*>(a.high_out);
    auto* to_low = static_cast<int16_t*>(a.low_out);
    if constexpr (kVector) {
      *reinterpret_cast<Pack<uint16_t>*>(to_high + i) = high;
      *reinterpret_cast<Pack<int16_t>*>(to_low + i) = low;
    } else {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        if (i + k >= a.count) continue;
        to_high[i + k] = high.v[k];
        to_low[i + k] = low.v[k];
      }
    }
  } else {
    store8<float, kVector>(a.p_out, i, a.count, p);
  }
}

__global__ void adamw_scalars_kernel(const float* schedule, const float* norm_squared,
                                     double max_norm, float* out) {
  const int i = static_cast<int>(threadIdx.x);
  const double norm = sqrt(static_cast<double>(*norm_squared));
  const bool finite = isfinite(norm);
  const double factor = max_norm == 0 ? 1.0 : fmin(1.0, max_norm / (norm + 1e-6));
  float value = schedule[i];
  if (i == kSkip && !finite) value = 1;
  if (i == kClipFactor) value = finite ? static_cast<float>(factor) : 0.0f;
  out[i] = value;
}

template <typename G>
void launch_typed(const AdamwArgs& a, bool vector, cudaStream_t stream) {
  const auto grid = static_cast<unsigned>(ceil_div(a.count, kThreads * 8));
  const bool halves = a.p == nullptr;
  if (halves && vector) {
    adamw_kernel<G, true, true><<<grid, kThreads, 0, stream>>>(a);
  } else if (halves) {
    adamw_kernel<G, true, false><<<grid, kThreads, 0, stream>>>(a);
  } else if (vector) {
    adamw_kernel<G, false, true><<<grid, kThreads, 0, stream>>>(a);
  } else {
    adamw_kernel<G, false, false><<<grid, kThreads, 0, stream>>>(a);
  }
}

}  // namespace

void launch_adamw(const AdamwArgs& a, cudaStream_t stream) {
  if (a.count == 0) return;
  bool vector = a.count % 8 == 0;
  for (const void* p :
       {a.g, static_cast<const void*>(a.m), static_cast<const void*>(a.v),
        static_cast<const void*>(a.p), a.high, a.low, static_cast<const void*>(a.m_out),
        static_cast<const void*>(a.v_out), static_cast<const void*>(a.p_out),
        static_cast<const void*>(a.high_out), static_cast<const void*>(a.low_out)}) {
    vector = vector && aligned16(p);
  }
  dispatch_float(a.g_dtype, [&]<typename G>() { launch_typed<G>(a, vector, stream); });
  check_launch("adamw");
}

void launch_adamw_scalars(const float* schedule, const float* norm_squared, double max_norm,
                          float* out, cudaStream_t stream) {
  adamw_scalars_kernel<<<1, 8, 0, stream>>>(schedule, norm_squared, max_norm, out);
  check_launch("adamw_scalars");
}

}  // namespace wam::cuda
