// Every tap fetches the input under a box: any kernel, strides and channels. The sum's order is
// that of conv3d_lines.cu, so that the bits do not depend on which of the two a shape takes.
#include "wam/kernels/cuda/conv3d_hopper.cuh"
#include "wam/kernels/cuda/tensor_map.h"

namespace wam::cuda::conv {
namespace {

constexpr int kBoxBytes = kBoxRows * 128;

template <int kColumns>
struct Layout {
  static constexpr int kFilterAt = kBoxes * kBoxBytes;
  static constexpr int kStageBytes = kFilterAt + kColumns * 128;
  static constexpr int kStages = std::min(6, (kMostShared - 2048) / kStageBytes);
  static constexpr int kBarriersAt = kStages * kStageBytes;
  static constexpr int kBytes = kBarriersAt + 2 * kStages * 8 + 1024;  // room to align
  static_assert(kStageBytes % 1024 == 0 && kBytes <= kMostShared);
};

#ifdef WAM_HOPPER

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
                                            int chunks) {
  using L = Layout<kColumns>;
  const auto bytes =
      static_cast<uint32_t>((kBoxes * p.box[0] * p.box[1] * p.box[2] * p.box[3] + kColumns) * 128);
  Ring<L::kStages> ring;
  for (int index = static_cast<int>(blockIdx.x); index < p.tiles;
       index += static_cast<int>(gridDim.x)) {
    const int column = index % p.column_tiles * kColumns;
    int corner[kBoxes][4];
    for (int kt = first_frame_tap(p, index, corner); kt < p.kernel[2]; ++kt) {
      for (int kh = 0; kh < p.kernel[1]; ++kh) {
        const int at_line = (kt * p.kernel[1] + kh) * p.kernel[0];
        for (int chunk = 0; chunk < chunks; ++chunk) {
          for (int kw = 0; kw < p.kernel[0]; ++kw) {
            uint64_t* full = shared.full(ring.at);
            hopper::barrier_wait(shared.empty(ring.at), ring.empty_parity());
            hopper::barrier_arrive_expecting(full, bytes);
            const uint32_t stage = shared.stage(ring.at);
#pragma unroll
            for (int b = 0; b < kBoxes; ++b) {
              int from[4];
              shifted(p, corner[b], {kw, kh, kt}, from);
              copy_box5(stage + static_cast<uint32_t>(b * kBoxBytes), &p.x, 64 * chunk, from, full);
            }
            hopper::copy_box(stage + L::kFilterAt, &p.w, 64 * chunk, at_line + kw, column, 0, full);
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
    conv3d_taps_kernel(const __grid_constant__ ConvProblem p) {
#ifdef WAM_HOPPER
  using L = Layout<kColumns>;
  extern __shared__ char raw[];
  const Shared<kColumns> shared(raw);
  if (threadIdx.x == 0) {
    for (int s = 0; s < L::kStages; ++s) {
      hopper::barrier_init(shared.full(s), 1);
      hopper::barrier_init_for_warps(shared.empty(s), kConsumerWarps);
    }
    hopper::barriers_initialised();
  }
  __syncthreads();
  const int chunks = (p.channels + 63) / 64;
  if (threadIdx.x < hopper::kWarpgroup) {
    hopper::keep_registers<24>();
    if (threadIdx.x == 0) fetch_tiles<kColumns>(p, shared, chunks);
    return;
  }
  hopper::take_registers<240>();
  const int box = static_cast<int>(threadIdx.x) / hopper::kWarpgroup - 1;
  const int last_products = (p.channels - 64 * (chunks - 1) + 15) / 16;
  Ring<L::kStages> ring;
  for (int index = static_cast<int>(blockIdx.x); index < p.tiles;
       index += static_cast<int>(gridDim.x)) {
    int corners[kBoxes][4];
    const int frame_taps = p.kernel[2] - first_frame_tap(p, index, corners);
    const int steps = frame_taps * p.kernel[1] * p.kernel[0] * chunks;
    float low[kColumns / 2] = {}, high[kColumns / 2] = {};
    int chunk = 0, kw = 0, before = 0;
    for (int step = 0; step < steps; ++step) {
      hopper::barrier_wait(shared.full(ring.at), ring.full_parity());
      const uint32_t stage = shared.stage(ring.at);
      multiply_some<kColumns, 1024>(low, high, stage + static_cast<uint32_t>(box * kBoxBytes),
                                    stage + L::kFilterAt, chunk == chunks - 1 ? last_products : 4);
      hopper::products_wait<1>();
      if (step > 0) hopper::barrier_arrive_warp(shared.empty(before));
      before = ring.at;
      ring.next();
      if (++kw < p.kernel[0]) continue;
      kw = 0;
      chunk = chunk == chunks - 1 ? 0 : chunk + 1;
    }
    hopper::products_wait<0>();
    hopper::barrier_arrive_warp(shared.empty(before));
    store_box<kColumns>(p, index, box, low, high);
  }
#endif
}

}  // namespace

void launch_taps(int columns, const ConvProblem& p, cudaStream_t stream) {
  dispatch_columns(columns, [&]<int kColumns>() {
    constexpr int kBytes = Layout<kColumns>::kBytes;
    const auto kernel = conv3d_taps_kernel<kColumns>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
          "conv3d");
    kernel<<<static_cast<unsigned>(std::min(p.tiles, multiprocessor_count())), kThreads, kBytes,
             stream>>>(p);
  });
  check_launch("conv3d");
}

}  // namespace wam::cuda::conv
