// Device helpers shared by the CUDA kernels: types, packs of eight elements, sums of a block.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "wam/kernels/cuda/support.h"

namespace wam::cuda {

using bf16 = __nv_bfloat16;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

__device__ __forceinline__ float wide(float x) { return x; }
__device__ __forceinline__ float wide(bf16 x) { return __bfloat162float(x); }
template <typename T>
__device__ __forceinline__ T narrow(float x) {
  if constexpr (sizeof(T) == 2) {
    return __float2bfloat16_rn(x);
  } else {
    return x;
  }
}
// x as it will read once stored.
template <typename T>
__device__ __forceinline__ float rounded(float x) {
  return wide(narrow<T>(x));
}

// Eight consecutive elements of a row as they lie in memory. kVector: 16-byte accesses; the width
// is then a multiple of 8 and the row 16-byte aligned. Columns beyond the width read as zero.
template <typename T>
struct alignas(16) Pack {
  T v[8];
};
template <typename T, bool kVector>
__device__ __forceinline__ Pack<T> load8(const T* row, int64_t column, int64_t width) {
  Pack<T> pack;
  if constexpr (kVector) {
    constexpr int kWords = sizeof(Pack<T>) / 16;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      reinterpret_cast<uint4*>(&pack)[i] =
          column < width ? reinterpret_cast<const uint4*>(row + column)[i] : uint4{0, 0, 0, 0};
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      pack.v[i] = column + i < width ? row[column + i] : narrow<T>(0.0f);
    }
  }
  return pack;
}
template <typename T, bool kVector>
__device__ __forceinline__ void load8(const T* row, int64_t column, int64_t width, float (&x)[8]) {
  const Pack<T> pack = load8<T, kVector>(row, column, width);
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = wide(pack.v[i]);
}
template <typename T, bool kVector>
__device__ __forceinline__ void store8(T* row, int64_t column, int64_t width, const float (&x)[8]) {
  if constexpr (kVector) {
    if (column >= width) return;
    Pack<T> pack;
#pragma unroll
    for (int i = 0; i < 8; ++i) pack.v[i] = narrow<T>(x[i]);
    constexpr int kWords = sizeof(Pack<T>) / 16;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      reinterpret_cast<uint4*>(row + column)[i] = reinterpret_cast<const uint4*>(&pack)[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (column + i < width) row[column + i] = narrow<T>(x[i]);
    }
  }
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}

// Sums kCount numbers over a block of at most 32 warps; every thread gets the totals, added up in
// warp order. One barrier a call: successive calls must pass alternating `slot`s (0, 1, 0, ...).
template <int kCount>
struct BlockSums {
  float partial[2][kCount][kWarp];
};
template <int kCount>
__device__ __forceinline__ void block_sum(BlockSums<kCount>& shared, int slot, float (&x)[kCount]) {
  const int warps = static_cast<int>(blockDim.x) / kWarp;
#pragma unroll
  for (int k = 0; k < kCount; ++k) x[k] = warp_sum(x[k]);
  if (warps == 1) return;
  if (threadIdx.x % kWarp == 0) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) shared.partial[slot][k][threadIdx.x / kWarp] = x[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    x[k] = warp_sum(lane < warps ? shared.partial[slot][k][lane] : 0.0f);
  }
}

// f.template operator()<float>() or <bf16>().
template <typename F>
void dispatch_float(DType dtype, const F& f) {
  check_float(dtype);
  if (dtype == DType::kBF16) {
    f.template operator()<bf16>();
  } else {
    f.template operator()<float>();
  }
}

}  // namespace wam::cuda
