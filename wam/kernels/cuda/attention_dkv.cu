// The keys' and values' gradients on tensor cores: S^T = K Q^T and dP^T = V dO^T again,
// dV += P^T dO, dK += dS^T Q, over the queries that see the tile of keys. No biases of pairs. The
// products of the next step's S and dP and of this one's dK run while probabilities are computed.
#include "wam/kernels/cuda/attention_hopper.cuh"

namespace wam::cuda::attention {
namespace {

// Outer: K, V. Stages: Q, dO, and the queries' stats.
template <int kHead>
using DkvLayout = Layout<kHead, 0, 2, kHead == 128 ? 3 : 6, 8>;

template <int kHead>
__global__ void __launch_bounds__(kThreads, 1) dkv_kernel(const __grid_constant__ Problem p) {
#ifdef WAM_HOPPER
  using L = DkvLayout<kHead>;
  extern __shared__ char raw[];
  const Shared<L> shared(raw);
  shared.init(true);
  const AttentionArgs& a = p.args;
  if (threadIdx.x < hopper::kWarpgroup) {
    hopper::keep_registers<kProducerRegisters>();
    if (threadIdx.x < kWarp) {
      produce<L>(p, shared, {{}, {&p.k, &p.v}, {&p.q, &p.dout}},
                 [&](const Item& item) { return stats_of(a, item.batch, item.head); });
    }
    return;
  }
  hopper::take_registers<kConsumerRegisters>();
  const Place place = place_of_thread();
  const bool announces = threadIdx.x % kWarp == 0;
  const float scale = a.scale * kLog2E;
  Ring<L::kStageCount> ring;
  Ring<2> outer;
  for (int i = static_cast<int>(blockIdx.x); i < p.items; i += static_cast<int>(gridDim.x)) {
    barrier_wait(shared.outer_full(outer.at), outer.full_parity());
    const int steps = shared.outer_info(outer.at).steps;
    const bool active = shared.outer_info(outer.at).count > place.group * kRows;
    if (!active) {
      for (int step = 0; step < steps; ++step) {
        barrier_wait(shared.full(ring.at), ring.full_parity());
        __syncwarp();
        if (announces) barrier_arrive(shared.empty(ring.at));
        ring.next();
      }
    } else {
      float dk[kHead / 2] = {}, dv[kHead / 2] = {}, bias[2] = {0, 0};
      if (a.key_bias != nullptr) {
        const OuterInfo item = shared.outer_info(outer.at);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = min(place.row + 8 * half, item.count - 1);
          bias[half] = a.key_bias[item.batch * a.key_bias_batch + item.begin + row] * kLog2E;
        }
      }
      const uint32_t k = shared.outer(outer.at, 0, place.group);
      const uint32_t v = shared.outer(outer.at, 1, place.group);
      float s[32], dp[32];
      uint32_t probabilities[16], ds[16];
      int before = 0;
      // In flight before: S and dP, or S, the last step's dK, and dP; afterwards nothing, or there
      // would not be registers enough.
      const auto gradients = [&]<int kAfterS>() {
        hopper::products_wait<kAfterS>();
        const int count = shared.step_info(ring.at).count;
        const float2* stats = shared.template row_data<float2>(ring.at) + place.column;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float4 two = *reinterpret_cast<const float4*>(stats + 8 * j);
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float lse = i == 0 ? two.x : two.z;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              float& x = s[4 * j + 2 * half + i];
              x = fmaf(x, scale, bias[half] - lse);
              x = hopper::exp2_fast(x);
            }
          }
        }
        if (count < kRows) {
#pragma unroll
          for (int e = 0; e < 32; ++e) {
            if (e / 4 * 8 + place.column + e % 2 >= count) s[e] = 0.0f;
          }
        }
        pack(s, probabilities);
        hopper::products_begin();
        multiply_columns<kHead>(dv, probabilities, shared.stage(ring.at, 1));
        hopper::products_commit();
        hopper::products_wait<1>();
        __syncwarp();
        if (kAfterS == 2 && announces) barrier_arrive(shared.empty(before));
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float4 two = *reinterpret_cast<const float4*>(stats + 8 * j);
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float delta = i == 0 ? two.y : two.w;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const int e = 4 * j + 2 * half + i;
              s[e] *= dp[e] - delta;
            }
          }
        }
        pack(s, ds);
        hopper::products_wait<0>();
        before = ring.at;
      };
      if (steps > 0) {
        barrier_wait(shared.full(ring.at), ring.full_parity());
        hopper::products_begin();
        multiply_rows<kHead>(s, k, shared.stage(ring.at, 0));
        hopper::products_commit();
        multiply_rows<kHead>(dp, v, shared.stage(ring.at, 1));
        hopper::products_commit();
        gradients.template operator()<1>();
#pragma unroll 1
        for (int step = 1; step < steps; ++step) {
          ring.next();
          barrier_wait(shared.full(ring.at), ring.full_parity());
          hopper::products_begin();
          multiply_rows<kHead>(s, k, shared.stage(ring.at, 0));
          hopper::products_commit();
          multiply_columns<kHead>(dk, ds, shared.stage(before, 0));
          hopper::products_commit();
          multiply_rows<kHead>(dp, v, shared.stage(ring.at, 1));
          hopper::products_commit();
          gradients.template operator()<2>();
        }
        hopper::products_begin();
        multiply_columns<kHead>(dk, ds, shared.stage(before, 0));
        hopper::products_commit();
        hopper::products_wait<0>();
        __syncwarp();
        if (announces) barrier_arrive(shared.empty(before));
        ring.next();
      }
      const OuterInfo item = shared.outer_info(outer.at);
      const int64_t at = item.batch * a.kv_batch + item.begin * a.kv_row + item.head * a.d;
      store_rows<kHead>(dk, static_cast<bf16*>(a.dk) + at, a.kv_row, place, item.count,
                        static_cast<int>(a.d), a.scale, a.scale);
      store_rows<kHead>(dv, static_cast<bf16*>(a.dv) + at, a.kv_row, place, item.count,
                        static_cast<int>(a.d), 1.0f, 1.0f);
    }
    __syncwarp();
    if (announces) barrier_arrive(shared.outer_empty(outer.at));
    outer.next();
  }
#endif
}

}  // namespace

void launch_dkv(const Problem& problem, cudaStream_t stream) {
  dispatch_head(problem.args.d, [&]<int kHead>() {
    launch(dkv_kernel<kHead>, DkvLayout<kHead>::kBytes, problem, "attention_dkv", stream);
  });
}

}  // namespace wam::cuda::attention
