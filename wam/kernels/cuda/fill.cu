// One thread makes four neighbours from one Philox block; bytes moved: the result's.
#include "wam/kernels/cuda/fill.h"

#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kThreads = 256;

// As wam/base/philox.h.
__device__ uint4 philox_block(uint4 c, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c.x, b = uint64_t{0xCD9E8D57u} * c.z;
    c = {static_cast<uint32_t>(b >> 32) ^ c.y ^ key0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c.w ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) fill_kernel(FillArgs a) {
  T* out = static_cast<T*>(a.out);
  const int64_t blocks = (a.count + 3) / 4;
  for (int64_t block = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; block < blocks;
       block += int64_t{gridDim.x} * blockDim.x) {
    const uint4 bits = philox_block(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
        static_cast<uint32_t>(a.seed), static_cast<uint32_t>(a.seed >> 32));
    const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
    for (int k = 0; k < 4 && block * 4 + k < a.count; ++k) {
      const float u = static_cast<float>(words[k] >> 8) * 0x1.0p-24f;
      out[block * 4 + k] = narrow<T>(__fadd_rn(a.low, __fmul_rn(__fsub_rn(a.high, a.low), u)));
    }
  }
}

// As split_float() (wam/tensor/split_float.h).
__device__ void split(float x, uint16_t& high, int16_t& low) {
  const uint32_t bits = __float_as_uint(x), rounded = (bits + 0x8000u) >> 16;
  high = static_cast<uint16_t>(rounded);
  low = static_cast<int16_t>(static_cast<uint16_t>(bits - (rounded << 16)));
}

// One thread makes two neighbours from one block. No step is contracted: the host's bits.
template <typename T>
__global__ void __launch_bounds__(kThreads) draw_kernel(DrawArgs a) {
  const int64_t blocks = (a.count + 1) / 2;
  for (int64_t block = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; block < blocks;
       block += int64_t{gridDim.x} * blockDim.x) {
    const auto number = static_cast<uint64_t>(block);
    const uint4 bits = philox_block(
        {static_cast<uint32_t>(number), static_cast<uint32_t>(a.index),
         static_cast<uint32_t>(a.index >> 32) ^ static_cast<uint32_t>(number >> 32), a.step},
        a.key0, a.key1);
    const uint64_t words[2] = {uint64_t{bits.x} << 32 | bits.y, uint64_t{bits.z} << 32 | bits.w};
    for (int k = 0; k < 2 && block * 2 + k < a.count; ++k) {
      const double u = static_cast<double>(words[k] >> 11) * 0x1.0p-53;
      const float value = __double2float_rn(__dadd_rn(a.low, __dmul_rn(__dsub_rn(a.high, a.low), u)));
      const int64_t e = block * 2 + k;
      if (a.rest == nullptr) {
        static_cast<T*>(a.out)[e] = narrow<T>(value);
      } else {
        split(value, static_cast<uint16_t*>(a.out)[e], static_cast<int16_t*>(a.rest)[e]);
      }
    }
  }
}

}  // namespace

void launch_draw_uniform(const DrawArgs& args, cudaStream_t stream) {
  if (args.count == 0) return;
  const unsigned grid = grid_for(args.count, 2 * kThreads);
  dispatch_float(args.dtype,
                 [&]<typename T>() { draw_kernel<T><<<grid, kThreads, 0, stream>>>(args); });
  check_launch("draw_uniform");
}

void launch_fill_uniform(const FillArgs& args, cudaStream_t stream) {
  if (args.count == 0) return;
  const unsigned grid = grid_for(args.count, 4 * kThreads);
  dispatch_float(args.dtype,
                 [&]<typename T>() { fill_kernel<T><<<grid, kThreads, 0, stream>>>(args); });
  check_launch("fill_uniform");
}

}  // namespace wam::cuda
