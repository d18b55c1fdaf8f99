// What the tensor-core convolutions share. A tile is two boxes of at most 128 neighbouring output
// positions times kColumns output channels; a box belongs to a warpgroup, whose accumulators are
// two times 64 rows. One warp of a third warpgroup fetches with the copy engine, which gives zeros
// outside of the clip. Taps that see only frames before the clip are left out.
#pragma once

#include "wam/kernels/cuda/conv3d.h"
#include "wam/kernels/cuda/hopper.cuh"

namespace wam::cuda::conv {

constexpr int kBoxRows = 128, kBoxes = 2;
constexpr int kThreads = (1 + kBoxes) * hopper::kWarpgroup;
constexpr int kConsumerWarps = kBoxes * hopper::kWarpgroup / kWarp;
constexpr int kMostShared = 227 * 1024;

struct ConvProblem {
  CUtensorMap x, w;
  const bf16 *bias, *residual;
  bf16* y;
  int box[4], blocks[4];  // width, height, time, samples
  int out[4], kernel[3], stride[3], before[3];
  int channels, out_channels, column_tiles, tiles;
};

// Kernels of the two ways, by kColumns.
void launch_taps(int columns, const ConvProblem& problem, cudaStream_t stream);
void launch_lines(int columns, const ConvProblem& problem, cudaStream_t stream);

// f.template operator()<kColumns>().
template <typename F>
void dispatch_columns(int columns, const F& f) {
  switch (columns) {
    case 64:
      return f.template operator()<64>();
    case 96:
      return f.template operator()<96>();
    case 128:
      return f.template operator()<128>();
    default:
      WAM_CHECK(columns == 160) << columns;
      return f.template operator()<160>();
  }
}

#ifdef WAM_HOPPER

// A box of a tensor of five dimensions; zeros outside of the tensor.
__device__ __forceinline__ void copy_box5(uint32_t to, const CUtensorMap* map, int c,
                                          const int (&at)[4], uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(to),
      "l"(map), "r"(hopper::shared_address(barrier)), "r"(c), "r"(at[0]), "r"(at[1]), "r"(at[2]),
      "r"(at[3])
      : "memory");
}

#define WAM_D8(d, i)                                                                          \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define WAM_D16(d, i) WAM_D8(d, i), WAM_D8(d, i + 8)
#define WAM_L0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
#define WAM_L1 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WAM_L2 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WAM_L3 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WAM_L4 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define WAM_MULTIPLY(n, list, a, b, ...)                                                       \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" n "k16.f32.bf16.bf16 {" list "}, " a ", " b \
               ", 1, 1, 1, 0, 0;"                                                              \
               : __VA_ARGS__                                                                   \
               : "l"(x), "l"(w))

// d [64, kColumns] += x [64, 16] w [16, kColumns], the sum contiguous in both.
template <int kColumns>
__device__ __forceinline__ void multiply(float (&d)[kColumns / 2], uint64_t x, uint64_t w) {
  if constexpr (kColumns == 64) {
    WAM_MULTIPLY("64", WAM_L0 WAM_L1, "%32", "%33", WAM_D16(d, 0), WAM_D16(d, 16));
  } else if constexpr (kColumns == 96) {
    WAM_MULTIPLY("96", WAM_L0 WAM_L1 WAM_L2, "%48", "%49", WAM_D16(d, 0), WAM_D16(d, 16),
                 WAM_D16(d, 32));
  } else if constexpr (kColumns == 128) {
    WAM_MULTIPLY("128", WAM_L0 WAM_L1 WAM_L2 WAM_L3, "%64", "%65", WAM_D16(d, 0), WAM_D16(d, 16),
                 WAM_D16(d, 32), WAM_D16(d, 48));
  } else {
    static_assert(kColumns == 160);
    WAM_MULTIPLY("160", WAM_L0 WAM_L1 WAM_L2 WAM_L3 WAM_L4, "%80", "%81", WAM_D16(d, 0),
                 WAM_D16(d, 16), WAM_D16(d, 32), WAM_D16(d, 48), WAM_D16(d, 64));
  }
}
#undef WAM_MULTIPLY

template <int kStages>
struct Ring {
  int at = 0;
  uint32_t round = 0;
  __device__ void next() {
    if (++at == kStages) {
      at = 0;
      ++round;
    }
  }
  __device__ uint32_t full_parity() const { return round & 1; }
  __device__ uint32_t empty_parity() const { return (round & 1) ^ 1; }
};

// First output position of box `index`; past the last sample for boxes there are not.
__device__ __forceinline__ void box_corner(const ConvProblem& p, int index, int (&at)[4]) {
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    at[d] = index % p.blocks[d] * p.box[d];
    index /= p.blocks[d];
  }
  at[3] = index * p.box[3];
}

__device__ __forceinline__ int box_of_tile(const ConvProblem& p, int index, int box) {
  return index / p.column_tiles * kBoxes + box;
}
// First tap along time that sees a frame of the clip; and the corners of the tile's boxes.
__device__ __forceinline__ int first_frame_tap(const ConvProblem& p, int index,
                                               int (&corner)[kBoxes][4]) {
  int last_frame = 0;
#pragma unroll
  for (int b = 0; b < kBoxes; ++b) {
    box_corner(p, box_of_tile(p, index, b), corner[b]);
    last_frame = max(last_frame, corner[b][2] + p.box[2] - 1);
  }
  return min(max(p.before[2] - last_frame * p.stride[2], 0), p.kernel[2] - 1);
}
// Input position under a box's corner for a tap.
__device__ __forceinline__ void shifted(const ConvProblem& p, const int (&corner)[4],
                                        const int (&tap)[3], int (&from)[4]) {
#pragma unroll
  for (int d = 0; d < 3; ++d) from[d] = corner[d] * p.stride[d] - p.before[d] + tap[d];
  from[3] = corner[3];
}

// Thread q of four has rows' pieces j: gives it piece q of the four threads' pieces (an
// involution).
__device__ __forceinline__ void transpose_quad(uint32_t (&v)[4]) {
  const bool odd = (threadIdx.x & 1) != 0, high = (threadIdx.x & 2) != 0;
#pragma unroll
  for (int k = 0; k < 4; k += 2) {
    const uint32_t got = __shfl_xor_sync(kAllLanes, odd ? v[k] : v[k + 1], 1);
    if (odd) {
      v[k] = got;
    } else {
      v[k + 1] = got;
    }
  }
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const uint32_t got = __shfl_xor_sync(kAllLanes, high ? v[k] : v[k + 2], 2);
    if (high) {
      v[k] = got;
    } else {
      v[k + 2] = got;
    }
  }
}

__device__ __forceinline__ float2 wide2(uint32_t pair) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
}

// Element offset of the row's first channel; -1 for rows that are no output.
__device__ __forceinline__ int64_t output_row(const ConvProblem& p, const int (&corner)[4],
                                              int row) {
  int64_t place = 0, stride = 1;
  bool inside = true;
#pragma unroll
  for (int d = 0; d < 4; ++d) {
    const int at = corner[d] + (d < 3 ? row % p.box[d] : row);
    inside = inside && at < p.out[d];
    row /= p.box[d];
    place += at * stride;
    stride *= p.out[d];
    if (d == 3) inside = inside && row == 0;
  }
  return inside ? place * p.out_channels : -1;
}

// A thread's two columns of every eight.
template <int kColumns>
__device__ __forceinline__ void load_bias(const ConvProblem& p, int column,
                                          uint32_t (&bias)[kColumns / 8]) {
  const int quad = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int j = 0; j < kColumns / 8; ++j) {
    const int at = column + 8 * j + 2 * quad;
    bias[j] = at < p.out_channels ? *reinterpret_cast<const uint32_t*>(p.bias + at) : 0;
  }
}

// Adds bias and residual to the 64 rows from `first` on of a box, rounds and stores them.
template <int kColumns>
__device__ __forceinline__ void store_rows(const ConvProblem& p, int column, const int (&corner)[4],
                                           int first, const uint32_t (&bias)[kColumns / 8],
                                           const float (&d)[kColumns / 2]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, quad = lane % 4;
  const int warp = static_cast<int>(threadIdx.x) % hopper::kWarpgroup / kWarp;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t row = output_row(p, corner, first + 16 * warp + lane / 4 + 8 * half);
    uint32_t more[kColumns / 32][4] = {};
    if (p.residual != nullptr) {  // all on their way before the first is used
#pragma unroll
      for (int k = 0; k < kColumns / 32; ++k) {
        const int mine = column + 32 * k + 8 * quad;
        if (row >= 0 && mine < p.out_channels) {
          *reinterpret_cast<uint4*>(more[k]) =
              __ldcs(reinterpret_cast<const uint4*>(p.residual + row + mine));
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kColumns / 32; ++k) {
      uint32_t out[4];
      if (p.residual != nullptr) transpose_quad(more[k]);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float2 constant = wide2(bias[4 * k + j]), added = wide2(more[k][j]);
        const int e = 16 * k + 4 * j + 2 * half;
        out[j] = hopper::pack2(d[e] + constant.x + added.x, d[e + 1] + constant.y + added.y);
      }
      transpose_quad(out);
      const int mine = column + 32 * k + 8 * quad;  // eight columns to store
      if (row < 0 || mine >= p.out_channels) continue;
      *reinterpret_cast<uint4*>(p.y + row + mine) = *reinterpret_cast<const uint4*>(out);
    }
  }
}

// A warpgroup's box of a tile, from its accumulators.
template <int kColumns>
__device__ __forceinline__ void store_box(const ConvProblem& p, int index, int box,
                                          const float (&low)[kColumns / 2],
                                          const float (&high)[kColumns / 2]) {
  const int column = index % p.column_tiles * kColumns;
  uint32_t bias[kColumns / 8];
  load_bias<kColumns>(p, column, bias);
  int corner[4];
  box_corner(p, box_of_tile(p, index, box), corner);
  store_rows<kColumns>(p, column, corner, 0, bias, low);
  store_rows<kColumns>(p, column, corner, 64, bias, high);
}

// Rows of products in shared memory: `address`, 16-byte aligned, and eight rows every `group`
// bytes.
template <uint32_t kGroup>
__device__ __forceinline__ uint64_t rows_descriptor(uint32_t address) {
  constexpr uint32_t kSwizzle128 = 1u << 30;
  return uint64_t{kSwizzle128 | (kGroup >> 4)} << 32 | (address >> 4);
}

// 128 rows, the second 64 of them 8 kGroup bytes on, times 16 kProducts channels.
template <int kColumns, uint32_t kGroup, int kProducts>
__device__ __forceinline__ void multiply_chunk(float (&low)[kColumns / 2],
                                               float (&high)[kColumns / 2], uint32_t x,
                                               uint32_t w) {
  hopper::products_begin();
#pragma unroll
  for (int k = 0; k < kProducts; ++k) {
    const uint64_t filters = rows_descriptor<1024>(w + 32 * k);
    multiply<kColumns>(low, rows_descriptor<kGroup>(x + 32 * k), filters);
    multiply<kColumns>(high, rows_descriptor<kGroup>(x + 8 * kGroup + 32 * k), filters);
  }
  hopper::products_commit();
}
template <int kColumns, uint32_t kGroup>
__device__ __forceinline__ void multiply_some(float (&low)[kColumns / 2],
                                              float (&high)[kColumns / 2], uint32_t x, uint32_t w,
                                              int products) {
  switch (products) {
    case 1:
      return multiply_chunk<kColumns, kGroup, 1>(low, high, x, w);
    case 2:
      return multiply_chunk<kColumns, kGroup, 2>(low, high, x, w);
    case 3:
      return multiply_chunk<kColumns, kGroup, 3>(low, high, x, w);
    default:
      return multiply_chunk<kColumns, kGroup, 4>(low, high, x, w);
  }
}

#endif  // WAM_HOPPER

}  // namespace wam::cuda::conv
