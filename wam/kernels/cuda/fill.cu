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

}  // namespace

void launch_fill_uniform(const FillArgs& args, cudaStream_t stream) {
  if (args.count == 0) return;
  const unsigned grid = grid_for(args.count, 4 * kThreads);
  dispatch_float(args.dtype,
                 [&]<typename T>() { fill_kernel<T><<<grid, kThreads, 0, stream>>>(args); });
  check_launch("fill_uniform");
}

}  // namespace wam::cuda
