// For kernels whose blocks walk over rows while each thread owns eight columns. The threads' pieces
// of later rows are fetched into shared memory while the present one is worked on: a piece is
// written and read by one thread only, so that no barrier is needed, and what is in flight does not
// lie in registers.
#pragma once

#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {

constexpr int kMostRowThreads = 1024;
constexpr int kSharedOfSm = 224 << 10;  // of Hopper's 228 KiB; each block also takes 1 KiB

// Threads for rows of `width` elements, eight each.
inline unsigned row_threads(int64_t width) {
  WAM_CHECK(width <= 8 * kMostRowThreads) << "rows of " << width << " elements; at most 8192";
  return static_cast<unsigned>(std::max<int64_t>(kWarp, round_up(ceil_div(width, 8), kWarp)));
}

// Eight elements in the words they travel in.
template <typename T>
struct Piece {
  static constexpr int kWords = static_cast<int>(sizeof(T)) / 2;
  uint4 words[kWords];
};
__device__ __forceinline__ void unpack2(uint32_t word, float& low, float& high) {
  low = __uint_as_float(word << 16);
  high = __uint_as_float(word & 0xffff0000u);
}
__device__ __forceinline__ void unpack(const Piece<bf16>& piece, float (&v)[8]) {
  unpack2(piece.words[0].x, v[0], v[1]);
  unpack2(piece.words[0].y, v[2], v[3]);
  unpack2(piece.words[0].z, v[4], v[5]);
  unpack2(piece.words[0].w, v[6], v[7]);
}
__device__ __forceinline__ void unpack(const Piece<float>& piece, float (&v)[8]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    v[4 * i] = __uint_as_float(piece.words[i].x);
    v[4 * i + 1] = __uint_as_float(piece.words[i].y);
    v[4 * i + 2] = __uint_as_float(piece.words[i].z);
    v[4 * i + 3] = __uint_as_float(piece.words[i].w);
  }
}
__device__ __forceinline__ uint32_t pack2(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
template <typename T>
__device__ __forceinline__ Piece<T> pack(const float (&v)[8]) {
  if constexpr (sizeof(T) == 2) {
    return {{{pack2(v[0], v[1]), pack2(v[2], v[3]), pack2(v[4], v[5]), pack2(v[6], v[7])}}};
  } else {
    return {{{__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
              __float_as_uint(v[3])},
             {__float_as_uint(v[4]), __float_as_uint(v[5]), __float_as_uint(v[6]),
              __float_as_uint(v[7])}}};
  }
}
template <typename T>
__device__ __forceinline__ void store_piece(T* to, const Piece<T>& piece) {
#pragma unroll
  for (int i = 0; i < Piece<T>::kWords; ++i) reinterpret_cast<uint4*>(to)[i] = piece.words[i];
}
template <typename T>
__device__ __forceinline__ Piece<T> load_piece(const T* from) {
  Piece<T> piece;
#pragma unroll
  for (int i = 0; i < Piece<T>::kWords; ++i) {
    piece.words[i] = reinterpret_cast<const uint4*>(from)[i];
  }
  return piece;
}

// Stages of a ring of `tensors` rows each, `kBlocks` blocks of kThreads threads a multiprocessor,
// which need `rest` bytes of shared memory beside it.
template <typename T, int kThreads, int kBlocks>
constexpr int ring_stages(int tensors, int rest) {
  const int stage = tensors * kThreads * static_cast<int>(sizeof(Piece<T>));
  return std::clamp((kSharedOfSm / kBlocks - 1024 - rest) / stage, 1, 4);
}

template <typename T, int kTensors, int kStages>
class RowRing {
 public:
  static constexpr int kAhead = kStages;
  __host__ __device__ static constexpr int bytes(int threads) {
    return kStages * kTensors * threads * static_cast<int>(sizeof(Piece<T>));
  }
  // `memory` of bytes(blockDim.x). A thread without columns fetches nothing and takes zeros.
  __device__ RowRing(void* memory, bool active)
      : memory_(static_cast<Piece<T>*>(memory) + threadIdx.x),
        stage_(kTensors * static_cast<int>(blockDim.x)) {
    if (active) return;
    for (int i = 0; i < kStages * kTensors; ++i) memory_[i * static_cast<int>(blockDim.x)] = {};
  }

  // Tensor `tensor` of the row to be taken kStages turns after this one (before the first turn: in
  // as many as were committed); `from` points to this thread's columns.
  __device__ __forceinline__ void fetch(int tensor, const T* from) {
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(place(tensor)));
#pragma unroll
    for (int i = 0; i < Piece<T>::kWords; ++i) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + 16 * i),
                   "l"(reinterpret_cast<const uint4*>(from) + i)
                   : "memory");
    }
  }
  // Ends a turn: also where nothing was fetched, past the last row.
  __device__ __forceinline__ void commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
    slot_ = next_slot();
  }
  // Waits until this turn's row, and `more` after it, have come.
  template <int more = 0>
  __device__ __forceinline__ void wait() {
    static_assert(more < kStages);
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 1 - more) : "memory");
  }
  __device__ __forceinline__ void take(int tensor, float (&v)[8]) const {
    unpack(*place(tensor), v);
  }
  // From the row of the turn after this one.
  __device__ __forceinline__ void take_next(int tensor, float (&v)[8]) const {
    unpack(memory_[next_slot() + tensor * static_cast<int>(blockDim.x)], v);
  }

 private:
  __device__ __forceinline__ Piece<T>* place(int tensor) const {
    return memory_ + slot_ + tensor * static_cast<int>(blockDim.x);
  }
  __device__ __forceinline__ int next_slot() const {
    return slot_ == (kStages - 1) * stage_ ? 0 : slot_ + stage_;
  }

  Piece<T>* memory_;
  int stage_, slot_ = 0;
};

// Sums kCount numbers over a block of at most kWarps warps. Between a thread's put and its get
// there must be a barrier, and between its get and the next put to the same slot, of two.
template <int kWarps, int kCount>
class BlockTotals {
 public:
  static constexpr int kFloats = 2 * kCount * kWarps;
  // Shared memory of kFloats; a barrier must follow.
  __device__ explicit BlockTotals(float* memory) : memory_(memory) {
    static_assert(kWarps % 4 == 0);
    for (int i = static_cast<int>(threadIdx.x); i < kFloats; i += static_cast<int>(blockDim.x)) {
      memory_[i] = 0;
    }
  }
  __device__ __forceinline__ void put(int slot, float (&x)[kCount]) {
    float* const at = memory_ + slot * kCount * kWarps;
#pragma unroll
    for (int step = kWarp / 2; step > 0; step /= 2) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) x[k] += __shfl_xor_sync(kAllLanes, x[k], step);
    }
    if (threadIdx.x % kWarp == 0) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) at[k * kWarps + threadIdx.x / kWarp] = x[k];
    }
  }
  __device__ __forceinline__ void get(int slot, float (&x)[kCount]) const {
    const float* const at = memory_ + slot * kCount * kWarps;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const auto* parts = reinterpret_cast<const float4*>(at + k * kWarps);
      float4 total = parts[0];
#pragma unroll
      for (int i = 1; i < kWarps / 4; ++i) {
        const float4 more = parts[i];
        total.x += more.x;
        total.y += more.y;
        total.z += more.z;
        total.w += more.w;
      }
      x[k] = (total.x + total.y) + (total.z + total.w);
    }
  }
  // One barrier a call: successive calls must use alternating slots.
  __device__ __forceinline__ void sum(int slot, float (&x)[kCount]) {
    put(slot, x);
    __syncthreads();
    get(slot, x);
  }

 private:
  float* memory_;
};

// A row's share of a thread.
__device__ __forceinline__ float sum8(const float (&v)[8]) {
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

// First of `count` things that block `block` of `blocks` takes: shares differ by one at most.
__host__ __device__ __forceinline__ int64_t share_begin(int64_t block, int64_t blocks,
                                                        int64_t count) {
  return block * count / blocks;
}
// The block that takes thing `i`.
__host__ __device__ __forceinline__ int64_t share_owner(int64_t i, int64_t blocks, int64_t count) {
  const int64_t product = (i + 1) * blocks - 1;
  if (product >> 31 == 0) {  // most often; a tenth of the work on a GPU
    return static_cast<uint32_t>(product) / static_cast<uint32_t>(count);
  }
  return product / count;
}

// Lets `kernel` use `bytes` of dynamic shared memory.
template <typename K>
void allow_shared(K* kernel, int bytes) {
  if (bytes <= 32 << 10) return;  // with what the kernel declares, below what every kernel may use
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "cudaFuncSetAttribute");
}

}  // namespace wam::cuda
