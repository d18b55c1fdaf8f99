// Kernels of three columns: the input under a box and one position to either side is fetched once
// for the three taps of a line, which read it one row of 128 bytes further each. Boxes are eight
// positions wide, so that every eight rows of a product lie together, ten rows from the next eight.
// Input and filters have rings of stages of their own.
#include "wam/kernels/cuda/conv3d_hopper.cuh"
#include "wam/kernels/cuda/tensor_map.h"

namespace wam::cuda::conv {
namespace {

constexpr int kTaps = 3, kGroupBytes = (8 + kTaps - 1) * 128;
constexpr int kBoxBytes = kBoxRows / 8 * kGroupBytes;

template <int kColumns>
struct Layout {
  static constexpr int kInputBytes = kBoxes * kBoxBytes, kFilterBytes = kColumns * 128;
  static constexpr int kInputs = kColumns <= 96 ? 3 : 2;
  static constexpr int kFiltersAt = kInputs * kInputBytes;
  static constexpr int kFilters =
      std::min(8, (kMostShared - 2048 - kInputs * kInputBytes) / kFilterBytes);
  static constexpr int kBarriersAt = kFiltersAt + kFilters * kFilterBytes;
  static constexpr int kBytes = kBarriersAt + 2 * (kInputs + kFilters) * 8 + 1024;
  static_assert(kInputBytes % 1024 == 0 && kFilterBytes % 1024 == 0 && kFilters >= 2 * kTaps &&
                kBytes <= kMostShared);
};

#ifdef WAM_HOPPER

template <int kColumns>
struct Shared {
  using L = Layout<kColumns>;
  char* base;
  __device__ explicit Shared(char* raw)
      : base(raw + ((1024 - hopper::shared_address(raw) % 1024) % 1024)) {}
  __device__ uint32_t input(int s) const {
    return hopper::shared_address(base) + static_cast<uint32_t>(s * L::kInputBytes);
  }
  __device__ uint32_t filter(int s) const {
    return hopper::shared_address(base) +
           static_cast<uint32_t>(L::kFiltersAt + s * L::kFilterBytes);
  }
  __device__ uint64_t* input_full(int s) const {
    return reinterpret_cast<uint64_t*>(base + L::kBarriersAt) + s;
  }
  __device__ uint64_t* input_empty(int s) const { return input_full(s) + L::kInputs; }
  __device__ uint64_t* filter_full(int s) const { return input_full(s) + 2 * L::kInputs; }
  __device__ uint64_t* filter_empty(int s) const { return filter_full(s) + L::kFilters; }
};

template <int kColumns>
__device__ __forceinline__ void fetch_tiles(const ConvProblem& p, const Shared<kColumns>& shared,
                                            int chunks) {
  using L = Layout<kColumns>;
  const auto bytes = static_cast<uint32_t>(kBoxes * kGroupBytes * p.box[1] * p.box[2] * p.box[3]);
  Ring<L::kInputs> inputs;
  Ring<L::kFilters> filters;
  for (int index = static_cast<int>(blockIdx.x); index < p.tiles;
       index += static_cast<int>(gridDim.x)) {
    const int column = index % p.column_tiles * kColumns;
    int corner[kBoxes][4];
    for (int kt = first_frame_tap(p, index, corner); kt < p.kernel[2]; ++kt) {
      for (int kh = 0; kh < p.kernel[1]; ++kh) {
        const int at_line = (kt * p.kernel[1] + kh) * kTaps;
        for (int chunk = 0; chunk < chunks; ++chunk) {
          uint64_t* full = shared.input_full(inputs.at);
          hopper::barrier_wait(shared.input_empty(inputs.at), inputs.empty_parity());
          hopper::barrier_arrive_expecting(full, bytes);
#pragma unroll
          for (int b = 0; b < kBoxes; ++b) {
            int from[4];
            shifted(p, corner[b], {0, kh, kt}, from);
            copy_box5(shared.input(inputs.at) + static_cast<uint32_t>(b * kBoxBytes), &p.x,
                      64 * chunk, from, full);
          }
          inputs.next();
          for (int kw = 0; kw < kTaps; ++kw) {
            uint64_t* filter_full = shared.filter_full(filters.at);
            hopper::barrier_wait(shared.filter_empty(filters.at), filters.empty_parity());
            hopper::barrier_arrive_expecting(filter_full, L::kFilterBytes);
            hopper::copy_box(shared.filter(filters.at), &p.w, 64 * chunk, at_line + kw, column, 0,
                             filter_full);
            filters.next();
          }
        }
      }
    }
  }
}

#endif  // WAM_HOPPER

template <int kColumns>
__global__ void __launch_bounds__(kThreads, 1)
    conv3d_lines_kernel(const __grid_constant__ ConvProblem p) {
#ifdef WAM_HOPPER
  using L = Layout<kColumns>;
  extern __shared__ char raw[];
  const Shared<kColumns> shared(raw);
  if (threadIdx.x == 0) {
    for (int s = 0; s < L::kInputs; ++s) {
      hopper::barrier_init(shared.input_full(s), 1);
      hopper::barrier_init_for_warps(shared.input_empty(s), kConsumerWarps);
    }
    for (int s = 0; s < L::kFilters; ++s) {
      hopper::barrier_init(shared.filter_full(s), 1);
      hopper::barrier_init_for_warps(shared.filter_empty(s), kConsumerWarps);
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
  Ring<L::kInputs> inputs;
  Ring<L::kFilters> filters;
  for (int index = static_cast<int>(blockIdx.x); index < p.tiles;
       index += static_cast<int>(gridDim.x)) {
    int corners[kBoxes][4];
    const int frame_taps = p.kernel[2] - first_frame_tap(p, index, corners);
    const int steps = frame_taps * p.kernel[1] * chunks;
    float low[kColumns / 2] = {}, high[kColumns / 2] = {};
    int chunk = 0, input_before = 0, filter_before = 0;
    for (int step = 0; step < steps; ++step) {
      const int products = chunk == chunks - 1 ? last_products : 4;
      const uint32_t input = shared.input(inputs.at) + static_cast<uint32_t>(box * kBoxBytes);
      hopper::barrier_wait(shared.input_full(inputs.at), inputs.full_parity());
#pragma unroll 1
      for (int t = 0; t < kTaps; ++t) {
        hopper::barrier_wait(shared.filter_full(filters.at), filters.full_parity());
        multiply_some<kColumns, kGroupBytes>(low, high, input + static_cast<uint32_t>(128 * t),
                                             shared.filter(filters.at), products);
        hopper::products_wait<1>();
        if (step > 0 || t > 0) hopper::barrier_arrive_warp(shared.filter_empty(filter_before));
        if (step > 0 && t == 0) hopper::barrier_arrive_warp(shared.input_empty(input_before));
        filter_before = filters.at;
        filters.next();
      }
      input_before = inputs.at;
      inputs.next();
      chunk = chunk == chunks - 1 ? 0 : chunk + 1;
    }
    hopper::products_wait<0>();
    hopper::barrier_arrive_warp(shared.filter_empty(filter_before));
    hopper::barrier_arrive_warp(shared.input_empty(input_before));
    store_box<kColumns>(p, index, box, low, high);
  }
#endif
}

}  // namespace

void launch_lines(int columns, const ConvProblem& p, cudaStream_t stream) {
  dispatch_columns(columns, [&]<int kColumns>() {
    constexpr int kBytes = Layout<kColumns>::kBytes;
    const auto kernel = conv3d_lines_kernel<kColumns>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
          "conv3d");
    kernel<<<static_cast<unsigned>(std::min(p.tiles, multiprocessor_count())), kThreads, kBytes,
             stream>>>(p);
  });
  check_launch("conv3d");
}

}  // namespace wam::cuda::conv
