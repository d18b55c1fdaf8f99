// Convolution as a product on Hopper's tensor cores: rows are output positions, columns output
// channels, the sum runs over taps and input channels. A tile is two boxes of at most 128
// neighbouring positions; for each tap and 64 channels the copy engine fetches the input under a
// box, shifted by the tap, with zeros outside of the clip. One warp fetches, two warpgroups
// multiply a box each. Taps that see only frames before the clip are left out.
#include "wam/kernels/cuda/conv3d.h"
#include "wam/kernels/cuda/hopper.cuh"
#include "wam/kernels/cuda/tensor_map.h"

namespace wam::cuda {
namespace {

constexpr int kBoxRows = 128, kBoxBytes = kBoxRows * 128, kBoxes = 2;
constexpr int kThreads = (1 + kBoxes) * hopper::kWarpgroup;
[[maybe_unused]] constexpr int kConsumerWarps = kBoxes * hopper::kWarpgroup / kWarp;

template <int kColumns>
struct Layout {
  static constexpr int kFilterAt = kBoxes * kBoxBytes;
  static constexpr int kStageBytes = kFilterAt + kColumns * 128;
  static constexpr int kStages = std::min(6, (227 * 1024 - 2048) / kStageBytes);
  static constexpr int kBarriersAt = kStages * kStageBytes;
  static constexpr int kBytes = kBarriersAt + 2 * kStages * 8 + 1024;  // room to align
  static_assert(kStageBytes % 1024 == 0 && kBytes <= 227 * 1024);
};

struct ConvProblem {
  CUtensorMap x, w;
  const bf16 *bias, *residual;
  bf16* y;
  int box[4], blocks[4];  // width, height, time, samples
  int out[4], kernel[3], stride[3], before[3];
  int channels, out_channels, column_tiles, tiles;
};

#ifdef WAM_HOPPER

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

struct Tile {
  int column, first_frame_tap, steps;
};
__device__ __forceinline__ int box_of_tile(const ConvProblem& p, int index, int box) {
  return index / p.column_tiles * kBoxes + box;
}
__device__ __forceinline__ Tile tile_of(const ConvProblem& p, int index, int chunks,
                                        int (&corner)[kBoxes][4]) {
  Tile t;
  t.column = index % p.column_tiles;
  int last_frame = 0;
#pragma unroll
  for (int b = 0; b < kBoxes; ++b) {
    box_corner(p, box_of_tile(p, index, b), corner[b]);
    last_frame = max(last_frame, corner[b][2] + p.box[2] - 1);
  }
  t.first_frame_tap = min(max(p.before[2] - last_frame * p.stride[2], 0), p.kernel[2] - 1);
  t.steps = (p.kernel[2] - t.first_frame_tap) * p.kernel[1] * p.kernel[0] * chunks;
  return t;
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

// Adds bias and residual to the 64 rows from `first` on of a box, rounds and stores them.
template <int kColumns>
__device__ __forceinline__ void store_rows(const ConvProblem& p, int column, const int (&corner)[4],
                                           int first, const float (&d)[kColumns / 2]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, quad = lane % 4;
  const int warp = static_cast<int>(threadIdx.x) % hopper::kWarpgroup / kWarp;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t row = output_row(p, corner, first + 16 * warp + lane / 4 + 8 * half);
#pragma unroll
    for (int k = 0; k < kColumns / 32; ++k) {
      const int mine = column + 32 * k + 8 * quad;  // eight columns to load and store
      const bool valid = row >= 0 && mine < p.out_channels;
      uint32_t more[4] = {}, out[4];
      if (p.residual != nullptr) {
        if (valid)
          *reinterpret_cast<uint4*>(more) =
              *reinterpret_cast<const uint4*>(p.residual + row + mine);
        transpose_quad(more);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int at = column + 32 * k + 8 * j + 2 * quad;
        const uint32_t pair =
            at < p.out_channels ? *reinterpret_cast<const uint32_t*>(p.bias + at) : 0;
        const float2 bias = wide2(pair), added = wide2(more[j]);
        const int e = 16 * k + 4 * j + 2 * half;
        out[j] = hopper::pack2(d[e] + bias.x + added.x, d[e + 1] + bias.y + added.y);
      }
      transpose_quad(out);
      if (valid) *reinterpret_cast<uint4*>(p.y + row + mine) = *reinterpret_cast<const uint4*>(out);
    }
  }
}

// The 128 rows of a box times up to 64 channels.
template <int kColumns, int kProducts>
__device__ __forceinline__ void multiply_chunk(float (&low)[kColumns / 2],
                                               float (&high)[kColumns / 2], uint32_t x,
                                               uint32_t w) {
  hopper::products_begin();
#pragma unroll
  for (int k = 0; k < kProducts; ++k) {
    const auto offset = static_cast<uint32_t>(32 * k);
    multiply<kColumns>(low, hopper::descriptor(x, offset, 0), hopper::descriptor(w, offset, 0));
    multiply<kColumns>(high, hopper::descriptor(x, offset + kBoxBytes / 2, 0),
                       hopper::descriptor(w, offset, 0));
  }
  hopper::products_commit();
}

template <int kColumns>
struct Shared {
  using L = Layout<kColumns>;
  char* base;
  __device__ explicit Shared(char* raw)
      : base(raw + ((1024 - hopper::shared_address(raw) % 1024) % 1024)) {}
  __device__ uint32_t stage(int s) const {
    return hopper::shared_address(base) + static_cast<uint32_t>(s * L::kStageBytes);
  }
  __device__ uint64_t* full(int s) const {
    return reinterpret_cast<uint64_t*>(base + L::kBarriersAt) + s;
  }
  __device__ uint64_t* empty(int s) const { return full(s) + L::kStages; }
};

template <int kColumns>
__device__ __forceinline__ void fetch_tiles(const ConvProblem& p, const Shared<kColumns>& shared,
                                            int chunks, int box_bytes) {
  using L = Layout<kColumns>;
  Ring<L::kStages> ring;
  for (int index = static_cast<int>(blockIdx.x); index < p.tiles;
       index += static_cast<int>(gridDim.x)) {
    int corner[kBoxes][4];
    const Tile tile = tile_of(p, index, chunks, corner);
    for (int kt = tile.first_frame_tap; kt < p.kernel[2]; ++kt) {
      for (int kh = 0; kh < p.kernel[1]; ++kh) {
        for (int kw = 0; kw < p.kernel[0]; ++kw) {
          const int tap[3] = {kw, kh, kt};
          int from[kBoxes][4];
#pragma unroll
          for (int b = 0; b < kBoxes; ++b) {
#pragma unroll
            for (int d = 0; d < 3; ++d) {
              from[b][d] = corner[b][d] * p.stride[d] - p.before[d] + tap[d];
            }
            from[b][3] = corner[b][3];
          }
          const int at_tap = (kt * p.kernel[1] + kh) * p.kernel[0] + kw;
          for (int chunk = 0; chunk < chunks; ++chunk) {
            uint64_t* full = shared.full(ring.at);
            hopper::barrier_wait(shared.empty(ring.at), ring.empty_parity());
            hopper::barrier_arrive_expecting(
                full, static_cast<uint32_t>(kBoxes * box_bytes + kColumns * 128));
            const uint32_t stage = shared.stage(ring.at);
#pragma unroll
            for (int b = 0; b < kBoxes; ++b) {
              copy_box5(stage + static_cast<uint32_t>(b * kBoxBytes), &p.x, 64 * chunk, from[b],
                        full);
            }
            hopper::copy_box(stage + L::kFilterAt, &p.w, 64 * chunk, at_tap, tile.column * kColumns,
                             0, full);
            ring.next();
          }
        }
      }
    }
  }
}

#endif  // WAM_HOPPER

template <int kColumns>
__global__ void __launch_bounds__(kThreads, 1)
    conv3d_kernel(const __grid_constant__ ConvProblem p) {
#ifdef WAM_HOPPER
  using L = Layout<kColumns>;
  extern __shared__ char raw[];
  const Shared<kColumns> shared(raw);
  if (threadIdx.x == 0) {
    for (int s = 0; s < L::kStages; ++s) {
      hopper::barrier_init(shared.full(s), 1);
      hopper::barrier_init(shared.empty(s), kConsumerWarps);
    }
    hopper::barriers_initialised();
  }
  __syncthreads();
  const int chunks = (p.channels + 63) / 64;
  if (threadIdx.x < hopper::kWarpgroup) {
    hopper::keep_registers<24>();
    if (threadIdx.x == 0) {
      const int box_bytes = p.box[0] * p.box[1] * p.box[2] * p.box[3] * 128;
      fetch_tiles<kColumns>(p, shared, chunks, box_bytes);
    }
    return;
  }
  hopper::take_registers<240>();
  const int box = static_cast<int>(threadIdx.x) / hopper::kWarpgroup - 1;
  const int last_products = (p.channels - 64 * (chunks - 1) + 15) / 16;
  Ring<L::kStages> ring;
  for (int index = static_cast<int>(blockIdx.x); index < p.tiles;
       index += static_cast<int>(gridDim.x)) {
    int corners[kBoxes][4];
    const Tile tile = tile_of(p, index, chunks, corners);
    float low[kColumns / 2] = {}, high[kColumns / 2] = {};
    int chunk = 0, before = 0;
    for (int step = 0; step < tile.steps; ++step) {
      hopper::barrier_wait(shared.full(ring.at), ring.full_parity());
      const uint32_t x = shared.stage(ring.at) + static_cast<uint32_t>(box * kBoxBytes);
      const uint32_t w = shared.stage(ring.at) + L::kFilterAt;
      switch (chunk == chunks - 1 ? last_products : 4) {
        case 1:
          multiply_chunk<kColumns, 1>(low, high, x, w);
          break;
        case 2:
          multiply_chunk<kColumns, 2>(low, high, x, w);
          break;
        case 3:
          multiply_chunk<kColumns, 3>(low, high, x, w);
          break;
        default:
          multiply_chunk<kColumns, 4>(low, high, x, w);
      }
      hopper::products_wait<1>();
      if (step > 0) hopper::barrier_arrive_warp(shared.empty(before));
      before = ring.at;
      chunk = chunk == chunks - 1 ? 0 : chunk + 1;
      ring.next();
    }
    hopper::products_wait<0>();
    hopper::barrier_arrive_warp(shared.empty(before));
    int corner[4];
    box_corner(p, box_of_tile(p, index, box), corner);
    store_rows<kColumns>(p, tile.column * kColumns, corner, 0, low);
    store_rows<kColumns>(p, tile.column * kColumns, corner, 64, high);
  }
#endif
}

// Boxes of 64 channels and the positions under a box of outputs.
CUtensorMap map_of_input(const ConvSizes& z, const ConvTiling& t, const void* x) {
  const auto c = static_cast<uint64_t>((z.channels + 7) / 8 * 8);
  const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
  TensorMapSpec spec{.dims = 5,
                     .sizes = {c, size(z.in[0]), size(z.in[1]), size(z.in[2]), size(z.batch)}};
  uint64_t bytes = c * 2;
  for (int d = 0; d < 4; ++d) {
    spec.strides[d] = bytes;
    bytes *= spec.sizes[d + 1];
  }
  spec.box[0] = 64;
  spec.steps[0] = 1;
  for (int d = 0; d < 4; ++d) {
    const int64_t step = d < 3 ? z.stride[d] : 1;
    spec.box[d + 1] = static_cast<uint32_t>(t.box[d] * step);
    spec.steps[d + 1] = static_cast<uint32_t>(step);
  }
  return make_tensor_map(x, spec);
}

CUtensorMap map_of_filters(const ConvSizes& z, const ConvTiling& t, const void* w) {
  const auto c = static_cast<uint64_t>((z.channels + 7) / 8 * 8),
             taps = static_cast<uint64_t>(z.taps()), out = static_cast<uint64_t>(z.out_channels);
  return make_tensor_map(w, {.dims = 4,
                             .sizes = {c, taps, out, 1},
                             .strides = {c * 2, taps * c * 2, out * taps * c * 2},
                             .box = {64, 1, static_cast<uint32_t>(t.columns), 1},
                             .steps = {1, 1, 1, 1}});
}

ConvProblem problem_of(const ConvSizes& z, const ConvTiling& t, const ConvOperands& a) {
  ConvProblem p{};
  p.x = map_of_input(z, t, a.x);
  p.w = map_of_filters(z, t, a.weight);
  p.bias = static_cast<const bf16*>(a.bias);
  p.residual = static_cast<const bf16*>(a.residual);
  p.y = static_cast<bf16*>(a.y);
  for (int d = 0; d < 4; ++d) {
    p.box[d] = static_cast<int>(t.box[d]);
    p.blocks[d] = static_cast<int>(t.blocks[d]);
    p.out[d] = static_cast<int>(d < 3 ? z.out[d] : z.batch);
    if (d == 3) continue;
    p.kernel[d] = static_cast<int>(z.kernel[d]);
    p.stride[d] = static_cast<int>(z.stride[d]);
    p.before[d] = static_cast<int>(z.before[d]);
  }
  p.channels = static_cast<int>(z.channels);
  p.out_channels = static_cast<int>(z.out_channels);
  p.column_tiles = static_cast<int>(ceil_div(z.out_channels, t.columns));
  p.tiles = static_cast<int>(ceil_div(t.boxes(), kBoxes)) * p.column_tiles;
  return p;
}

template <int kColumns>
void launch(const ConvProblem& p, cudaStream_t stream) {
  using L = Layout<kColumns>;
  check(cudaFuncSetAttribute(conv3d_kernel<kColumns>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             L::kBytes),
        "conv3d");
  const auto blocks = static_cast<unsigned>(std::min(p.tiles, multiprocessor_count()));
  conv3d_kernel<kColumns><<<blocks, kThreads, L::kBytes, stream>>>(p);
  check_launch("conv3d");
}

}  // namespace

void launch_hopper_conv3d(const ConvSizes& z, const ConvTiling& tiling,
                          const ConvOperands& operands, cudaStream_t stream) {
  const ConvProblem p = problem_of(z, tiling, operands);
  switch (tiling.columns) {
    case 64:
      return launch<64>(p, stream);
    case 96:
      return launch<96>(p, stream);
    case 128:
      return launch<128>(p, stream);
    default:
      WAM_CHECK(tiling.columns == 160) << tiling.columns;
      return launch<160>(p, stream);
  }
}

}  // namespace wam::cuda
