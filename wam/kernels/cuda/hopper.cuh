// Instructions of Hopper (sm_90a): barriers in shared memory, asynchronous copies, matrix products
// of a warpgroup. Bodies are empty elsewhere; the host never launches these kernels there.
#pragma once

#include <cuda.h>

#include "wam/kernels/cuda/support.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WAM_HOPPER 1
#endif

namespace wam::cuda::hopper {

constexpr int kWarpgroup = 128;

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

#ifdef WAM_HOPPER

__device__ __forceinline__ void barrier_init(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals));
}
// Arrivals of a warp in barrier_arrive_warp(). One is enough and faster; racecheck follows only the lane
// that arrives, so that reads of the others look unordered to it: for it all of them do.
#ifdef WAM_RACECHECK
constexpr uint32_t kWarpArrivals = 32;
#else
constexpr uint32_t kWarpArrivals = 1;
#endif
__device__ __forceinline__ void barrier_init_for_warps(uint64_t* barrier, uint32_t warps) {
  barrier_init(barrier, warps * kWarpArrivals);
}
// After what the warp's threads did so far.
__device__ __forceinline__ void barrier_arrive_warp(uint64_t* barrier) {
  __syncwarp();
#ifdef WAM_RACECHECK
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
  return;
#endif
  asm volatile(
      "{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\n"
      "@p mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];\n}" ::"r"(shared_address(barrier))
      : "memory");
}
// Arrives, and makes the barrier wait for `bytes` of copy_box as well.
__device__ __forceinline__ void barrier_arrive_expecting(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
// Arrives once this thread's copies of single pieces have landed.
__device__ __forceinline__ void barrier_arrive_after_copies(uint64_t* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
// Makes initialised barriers visible to the copy engine; a block barrier must follow.
__device__ __forceinline__ void barriers_initialised() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ bool barrier_test(uint64_t* barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
      "selp.b32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
__device__ __forceinline__ void barrier_wait(uint64_t* barrier, uint32_t parity) {
  while (!barrier_test(barrier, parity)) {
  }
}

// 4 bytes from global to shared memory; zero if not `valid` (the address must be readable still).
__device__ __forceinline__ void copy4(uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
               "r"(valid ? 4 : 0)
               : "memory");
}
// A box of a tensor of four dimensions, at coordinates (x, y, z, w); zeros outside of the tensor.
__device__ __forceinline__ void copy_box(uint32_t to, const CUtensorMap* map, int x, int y, int z,
                                         int w, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}
__device__ __forceinline__ uint4 load_shared16(uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
// Four 8x8 matrices of bf16; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(uint32_t (&d)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address)
               : "memory");
}
// Makes this thread's writes to shared memory visible to the tensor cores.
__device__ __forceinline__ void fence_for_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void products_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void products_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

template <int kRegisters>
__device__ __forceinline__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// A matrix in shared memory: rows of 64 bf16 (128 bytes) with the 16-byte pieces of row r exchanged
// by xor with r % 8; wider matrices lie as slabs of 64 columns, `slab_bytes` apart. 1024-byte
// aligned. As the operand whose rows run along the sum (k contiguous): slab_bytes unused. As the
// operand whose rows are the sum's steps (k strided): slabs follow each other along n.
// `offset`: bytes from the address, a multiple of 16; a constant costs one addition.
__device__ __forceinline__ uint64_t descriptor(uint32_t address, uint32_t offset,
                                               uint32_t slab_bytes) {
  constexpr uint32_t kSwizzle128 = 1u << 30, kEightRows = 1024 >> 4;
  const uint32_t low = (address >> 4) + ((offset >> 4) | (slab_bytes >> 4 << 16));
  return uint64_t{kSwizzle128 | kEightRows} << 32 | low;
}

#define WAM_R8(d, i)                                                                          \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define WAM_R32(d, i) WAM_R8(d, i), WAM_R8(d, i + 8), WAM_R8(d, i + 16), WAM_R8(d, i + 24)

// d [64, 64] (+)= A [64, 16] B [16, 64]; A and B in shared memory, k contiguous in both.
__device__ __forceinline__ void multiply_ss(float (&d)[32], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, 0, 0;\n}"
      : WAM_R32(d, 0)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
// The same with A in registers.
__device__ __forceinline__ void multiply_rs_rows(float (&d)[32], const uint32_t (&a)[4], uint64_t b,
                                                 bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}"
      : WAM_R32(d, 0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)));
}
// d [64, N] += A [64, 16] B [16, N]; A in registers, B in shared memory with n contiguous.
__device__ __forceinline__ void multiply_rs(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
      : WAM_R32(d, 0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ __forceinline__ void multiply_rs(float (&d)[64], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
      : WAM_R32(d, 0), WAM_R32(d, 32)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#undef WAM_R32
#undef WAM_R8

// 2^x, subnormal results zero.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ uint32_t pack2(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

#endif  // WAM_HOPPER

}  // namespace wam::cuda::hopper
