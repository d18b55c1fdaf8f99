// A product without tensor cores for shapes that cuBLASLt refuses, and data to time products on.
#include "wam/kernels/cuda/gemm.h"
#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

template <typename In, typename Out>
__global__ void __launch_bounds__(256)
    plain_gemm_kernel(GemmSpec s, const In* a, const In* b, Out* d, const In* bias) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= s.m * s.n) return;
  const int64_t row = i % s.m, column = i / s.m;
  float sum = 0;
  for (int64_t p = 0; p < s.k; ++p) {
    sum += wide(a[s.trans_a ? row * s.lda + p : p * s.lda + row]) *
           wide(b[s.trans_b ? p * s.ldb + column : column * s.ldb + p]);
  }
  if (bias != nullptr) sum += wide(bias[row]);
  d[i] = narrow<Out>(s.accumulate ? sum + wide(d[i]) : sum);
}

// bf16 numbers of either sign between 1/8 and 2.
__global__ void fill_kernel(uint16_t* p, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    uint32_t x = static_cast<uint32_t>(i) * 2654435761u + 0x9e3779b9u;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x ^= x >> 16;
    p[i] = static_cast<uint16_t>((x & 0x8000u) | (0x3e00u + (x & 0x01ffu)));
  }
}

}  // namespace

void launch_plain_gemm(const GemmSpec& s, const GemmOperands& o, cudaStream_t stream) {
  if (s.m * s.n == 0) return;
  const bool bias = s.epilogue == GemmSpec::Epilogue::kBias;
  WAM_CHECK(bias || s.epilogue == GemmSpec::Epilogue::kNone) << s.key();
  dispatch_float(s.in, [&]<typename In>() {
    dispatch_float(s.out, [&]<typename Out>() {
      plain_gemm_kernel<<<static_cast<unsigned>(ceil_div(s.m * s.n, 256)), 256, 0, stream>>>(
          s, static_cast<const In*>(o.a), static_cast<const In*>(o.b), static_cast<Out*>(o.d),
          bias ? static_cast<const In*>(o.bias) : nullptr);
    });
  });
  check_launch("plain_gemm");
}

void fill_for_timing(void* p, int64_t bytes, cudaStream_t stream) {
  fill_kernel<<<1056, 256, 0, stream>>>(static_cast<uint16_t*>(p), bytes / 2);
  check_launch("fill_for_timing");
}

}  // namespace wam::cuda
