// Random fill and a hash of a buffer, for cuda_probe.cc.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

__device__ uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}
__global__ void fill_bf16(__nv_bfloat16* p, size_t n, uint32_t seed, float scale) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n;
       i += size_t{gridDim.x} * blockDim.x) {
    const uint32_t a = mix(uint32_t(i) * 2654435761u + seed), b = mix(a + 0x9e3779b9u);
    const float u = (a >> 8) * (1.0f / 16777216.0f) + 1e-7f, v = (b >> 8) * (1.0f / 16777216.0f);
    p[i] = __float2bfloat16(scale * sqrtf(-2.0f * logf(u)) * cospif(2.0f * v));
  }
}
__global__ void hash_words(const uint32_t* p, size_t n, unsigned long long* out) {
  unsigned long long h = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n;
       i += size_t{gridDim.x} * blockDim.x)
    h += (unsigned long long)(mix(p[i] ^ mix(uint32_t(i)))) * (i | 1);
  atomicAdd(out, h);
}

}  // namespace

void launch_fill_bf16(void* p, size_t n, uint32_t seed, float scale, cudaStream_t stream) {
  fill_bf16<<<1024, 256, 0, stream>>>(static_cast<__nv_bfloat16*>(p), n, seed, scale);
}
void launch_hash(const void* p, size_t words, unsigned long long* out, cudaStream_t stream) {
  hash_words<<<1024, 256, 0, stream>>>(static_cast<const uint32_t*>(p), words, out);
}
