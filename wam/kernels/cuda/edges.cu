#include "wam/kernels/cuda/edges.h"

#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kThreads = 256;

// Place of element `at` of a patch: (channel, row, column) either order.
struct InPatch {
  int64_t channel, row, column;
};
__device__ InPatch in_patch(const Patches& p, int64_t at) {
  if (p.channel_first) return {at / 4, at % 4 / 2, at % 2};
  return {at % p.channels, at / p.channels / 2, at / p.channels % 2};
}

template <typename From, typename To>
__global__ void __launch_bounds__(kThreads) patchify_kernel(Patches p, const From* x, To* y) {
  const int64_t h = p.height / 2, w = p.width / 2, size = 4 * p.channels;
  const int64_t step = int64_t{gridDim.x} * blockDim.x, count = p.frames * h * w * size;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t token = i / size, frame = token / (h * w);
    const InPatch at = in_patch(p, i % size);
    const int64_t row = token % (h * w) / w * 2 + at.row, column = token % w * 2 + at.column;
    y[i] = narrow<To>(
        wide(x[((frame * p.height + row) * p.width + column) * p.channels + at.channel]));
  }
}

template <typename From, typename To>
__global__ void __launch_bounds__(kThreads) unpatchify_kernel(Patches p, const From* x, To* y) {
  const int64_t h = p.height / 2, w = p.width / 2, size = 4 * p.channels;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const int64_t count = p.frames * p.height * p.width * p.channels;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t channel = i % p.channels, pixel = i / p.channels;
    const int64_t column = pixel % p.width, line = pixel / p.width;
    const int64_t row = line % p.height, frame = line / p.height;
    if (row >= 2 * h || column >= 2 * w) {
      y[i] = narrow<To>(0.0f);
      continue;
    }
    const int64_t token = (frame * h + row / 2) * w + column / 2;
    const int64_t at = p.channel_first ? channel * 4 + row % 2 * 2 + column % 2
                                       : (row % 2 * 2 + column % 2) * p.channels + channel;
    y[i] = narrow<To>(wide(x[token * size + at]));
  }
}

__global__ void __launch_bounds__(kThreads)
    timestep_embedding_kernel(const float* t, int64_t count, int64_t half, bool cos_first,
                              float* y) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count * half) return;
  const int64_t row = i / half, k = i % half;
  const double frequency = pow(10000.0, -static_cast<double>(k) / static_cast<double>(half));
  double sine, cosine;
  sincos(static_cast<double>(t[row]) * frequency, &sine, &cosine);
  float* out = y + row * 2 * half;
  out[cos_first ? k : half + k] = static_cast<float>(cosine);
  out[cos_first ? half + k : k] = static_cast<float>(sine);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    lerp_rows_kernel(LerpRows a, const T* x, const T* noise, const float* sigma,
                     const int32_t* index, T* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, count = a.batch * a.length * a.width;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t row = i / a.width, b = row / a.length;
    const float s = sigma[b * a.num_rows + index[row % a.length]];
    y[i] = narrow<T>(__fadd_rn(__fmul_rn(1.0f - s, wide(x[i])), __fmul_rn(s, wide(noise[i]))));
  }
}

template <typename M>
__global__ void __launch_bounds__(kThreads)
    modulation_table_kernel(ModulationTable a, const float* e, const M* m, float* table) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, count = a.parts * a.rows * a.width;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t c = i % a.width, row = i / a.width % a.rows, part = i / a.width / a.rows;
    table[i] = e[(row * a.parts + part) * a.width + c] + wide(m[part * a.width + c]);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    relative_bias_kernel(const T* table, const int32_t* bucket, int64_t heads, int64_t queries,
                         int64_t keys, float* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, count = heads * queries * keys;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t key = i % keys, query = i / keys % queries, head = i / keys / queries;
    y[i] = wide(table[int64_t{bucket[key - query + queries - 1]} * heads + head]);
  }
}

}  // namespace

void launch_patchify(const Patches& p, const void* x, void* y, cudaStream_t stream) {
  const int64_t count = p.frames * (p.height / 2) * (p.width / 2) * 4 * p.channels;
  if (count == 0) return;
  dispatch_float(p.from, [&]<typename From>() {
    dispatch_float(p.to, [&]<typename To>() {
      patchify_kernel<<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          p, static_cast<const From*>(x), static_cast<To*>(y));
    });
  });
  check_launch("patchify");
}

void launch_unpatchify(const Patches& p, const void* x, void* y, cudaStream_t stream) {
  const int64_t count = p.frames * p.height * p.width * p.channels;
  if (count == 0) return;
  dispatch_float(p.from, [&]<typename From>() {
    dispatch_float(p.to, [&]<typename To>() {
      unpatchify_kernel<<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          p, static_cast<const From*>(x), static_cast<To*>(y));
    });
  });
  check_launch("unpatchify");
}

void launch_timestep_embedding(const float* t, int64_t count, int64_t dim, bool cos_first, float* y,
                               cudaStream_t stream) {
  if (count == 0) return;
  timestep_embedding_kernel<<<static_cast<unsigned>(ceil_div(count * dim / 2, kThreads)), kThreads,
                              0, stream>>>(t, count, dim / 2, cos_first, y);
  check_launch("timestep_embedding");
}

void launch_lerp_rows(const LerpRows& a, const void* x, const void* noise, const float* sigma,
                      const int32_t* index, void* y, cudaStream_t stream) {
  const int64_t count = a.batch * a.length * a.width;
  if (count == 0) return;
  dispatch_float(a.dtype, [&]<typename T>() {
    lerp_rows_kernel<<<grid_for(count, kThreads), kThreads, 0, stream>>>(
        a, static_cast<const T*>(x), static_cast<const T*>(noise), sigma, index,
        static_cast<T*>(y));
  });
  check_launch("lerp_rows");
}

void launch_modulation_table(const ModulationTable& a, const float* e, const void* m, float* table,
                             cudaStream_t stream) {
  const int64_t count = a.parts * a.rows * a.width;
  if (count == 0) return;
  dispatch_float(a.m_dtype, [&]<typename M>() {
    modulation_table_kernel<<<grid_for(count, kThreads), kThreads, 0, stream>>>(
        a, e, static_cast<const M*>(m), table);
  });
  check_launch("modulation_table");
}

void launch_relative_bias(DType dtype, const void* table, const int32_t* bucket, int64_t heads,
                          int64_t queries, int64_t keys, float* y, cudaStream_t stream) {
  const int64_t count = heads * queries * keys;
  if (count == 0) return;
  dispatch_float(dtype, [&]<typename T>() {
    relative_bias_kernel<<<grid_for(count, kThreads), kThreads, 0, stream>>>(
        static_cast<const T*>(table), bucket, heads, queries, keys, y);
  });
  check_launch("relative_bias");
}

}  // namespace wam::cuda
