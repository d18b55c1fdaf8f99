// The queries' gradient on tensor cores: S and dP = dO V^T again, dQ += dS K. Q stays in registers.
// Writes the queries' stats on the way, for the keys' gradient. No biases of pairs.
// While a step's probabilities are computed, the last step's dQ and this one's dP are multiplied.
#include "wam/kernels/cuda/attention_hopper.cuh"

namespace wam::cuda::attention {
namespace {

// Brief: Q, O. Outer: dO. Stages: K, V, and the keys' biases.
template <int kHead>
using DqLayout = Layout<kHead, 2, 2, 1, kHead == 128 ? 3 : 6, 1>;

#ifdef WAM_HOPPER

// Sums over channels of products of two blocks' rows: of rows `row` and `row` + 8, row = the
// thread's row in 64. All threads of a quad get them.
template <int kHead>
__device__ __forceinline__ void row_products(float (&sum)[2], uint32_t a, uint32_t b, int row) {
  const int lane = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sum[half] = 0;
#pragma unroll
    for (int i = 0; i < kHead / 32; ++i) {
      const int piece = lane + 4 * i;  // of 16 bytes
      const auto at = static_cast<uint32_t>(piece / 8 * kSlab + (row + 8 * half) * 128 +
                                            ((piece % 8) ^ (row % 8)) * 16);
      const uint4 x = hopper::load_shared16(a + at), y = hopper::load_shared16(b + at);
      const uint32_t xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float2 u = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(xs[k]));
        const float2 v = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(ys[k]));
        sum[half] = fmaf(u.x, v.x, fmaf(u.y, v.y, sum[half]));
      }
    }
    sum[half] = quad_sum(sum[half]);
  }
}

#endif

template <int kHead, bool kBias>
__global__ void __launch_bounds__(DqLayout<kHead>::kThreads, 1)
    dq_kernel(const __grid_constant__ Problem p) {
#ifdef WAM_HOPPER
  using L = DqLayout<kHead>;
  extern __shared__ char raw[];
  const Shared<L> shared(raw);
  shared.init(p.args.key_bias != nullptr);
  const AttentionArgs& a = p.args;
  if (threadIdx.x < hopper::kWarpgroup) {
    hopper::keep_registers<kProducerRegisters<2>>();
    if (threadIdx.x < kWarp) {
      produce<L>(p, shared, {{&p.q, &p.out}, {&p.dout}, {&p.k, &p.v}},
                 [&](const Item& item) { return key_biases(a, item); });
    }
    return;
  }
  hopper::take_registers<kConsumerRegisters<2>>();
  const Place place = place_of_thread();
  const float scale = a.scale * kLog2E;
  const int64_t num_stats = a.batch * a.heads * a.queries;
  Ring<L::kStageCount> ring;
  Ring<2> outer;
  Ring<1> brief;
  while (true) {
    barrier_wait(shared.outer_full(outer.at), outer.full_parity());
    const OuterInfo item = uniform(shared.outer_info(outer.at));
    if (item.count == 0) break;
    barrier_wait(shared.brief_full(), brief.full_parity());
    brief.next();
    if (item.count <= place.group * kRows) {  // nothing for this warpgroup
      barrier_arrive_warp(shared.brief_empty());
      barrier_arrive_warp(shared.outer_empty(outer.at));
      outer.next();
      skip_steps(shared, ring, item.steps);
      continue;
    }
    const int64_t first = first_query(a, item.batch, item.head) + item.begin;
    float lse[2];  // of the thread's rows
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      lse[half] = a.lse[first + min(place.row + 8 * half, item.count - 1)];
    }
    uint32_t q[kHead / 16][4];
    load_rows<kHead>(q, shared.brief(0, place.group));
    const uint32_t dout = shared.outer(outer.at, 0, place.group);
    float dq[kHead / 2] = {}, s[32], dp[32];
    uint32_t ds[16];
    barrier_wait(shared.full(ring.at), ring.full_parity());
    hopper::products_begin();
    multiply_rows<kHead>(s, q, shared.stage(ring.at, 0));
    hopper::products_commit();
    multiply_rows<kHead>(dp, dout, shared.stage(ring.at, 1));
    hopper::products_commit();
    float delta[2];
    row_products<kHead>(delta, dout, shared.brief(1, place.group), place.row % kRows);
    barrier_arrive_warp(shared.brief_empty());
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = place.row + 8 * half;
      lse[half] *= kLog2E;
      if (place.column == 0 && row < item.count) {
        a.stats[first + row] = lse[half];
        a.stats[num_stats + first + row] = delta[half];
      }
    }
    int before = 0;
    const auto probabilities_of = [&](const StepInfo& keys) {
      if constexpr (!kBias) {
#pragma unroll
        for (int e = 0; e < 32; ++e) {
          s[e] = hopper::exp2_fast(fmaf(s[e], scale, -lse[e % 4 / 2]));
        }
      } else {
        const float* bias = shared.numbers(ring.at) + place.column;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float2 b = *reinterpret_cast<const float2*>(bias + 8 * j);
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            float &x = s[4 * j + 2 * half], &y = s[4 * j + 2 * half + 1];
            x = hopper::exp2_fast(fmaf(x, scale, fmaf(b.x, kLog2E, -lse[half])));
            y = hopper::exp2_fast(fmaf(y, scale, fmaf(b.y, kLog2E, -lse[half])));
          }
        }
      }
      if (keys.count < kRows) {
#pragma unroll
        for (int e = 0; e < 32; ++e) {
          if (e / 4 * 8 + place.column + e % 2 >= keys.count) s[e] = 0.0f;
        }
      }
    };
    // With S and dP in flight, or S, the last step's dQ, and dP.
    const auto gradients = [&]<int kAfterS>() {
      hopper::products_wait<kAfterS>();
      probabilities_of(shared.step_info(ring.at));
      hopper::products_wait<0>();
      if (kAfterS == 2) barrier_arrive_warp(shared.empty(before));
#pragma unroll
      for (int e = 0; e < 32; ++e) s[e] *= dp[e] - delta[e % 4 / 2];
      pack(s, ds);
      before = ring.at;
    };
    gradients.template operator()<1>();
#pragma unroll 1
    for (int step = 1; step < item.steps; ++step) {
      ring.next();
      barrier_wait(shared.full(ring.at), ring.full_parity());
      hopper::products_begin();
      multiply_rows<kHead>(s, q, shared.stage(ring.at, 0));
      hopper::products_commit();
      multiply_columns<kHead>(dq, ds, shared.stage(before, 0));
      hopper::products_commit();
      multiply_rows<kHead>(dp, dout, shared.stage(ring.at, 1));
      hopper::products_commit();
      gradients.template operator()<2>();
    }
    barrier_arrive_warp(shared.outer_empty(outer.at));
    outer.next();
    hopper::products_begin();
    multiply_columns<kHead>(dq, ds, shared.stage(before, 0));
    hopper::products_commit();
    hopper::products_wait<0>();
    barrier_arrive_warp(shared.empty(before));
    ring.next();
    bf16* out =
        static_cast<bf16*>(a.dq) + item.batch * a.q_batch + item.begin * a.q_row + item.head * a.d;
    store_rows<kHead>(dq, out, a.q_row, place, item.count, static_cast<int>(a.d), a.scale, a.scale);
  }
#endif
}

}  // namespace

void launch_dq(const Problem& problem, cudaStream_t stream) {
  dispatch(problem.args.d, problem.args.key_bias != nullptr, [&]<int kHead, bool kBias>() {
    launch<DqLayout<kHead>>(dq_kernel<kHead, kBias>, problem, "attention_dq", stream);
  });
}

}  // namespace wam::cuda::attention
