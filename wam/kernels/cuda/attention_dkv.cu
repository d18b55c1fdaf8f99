// The keys' and values' gradients on tensor cores: S^T = K Q^T and dP^T = V dO^T again,
// dV += P^T dO, dK += dS^T Q, over the queries that see the tile of keys, or over a part of them.
// No biases of pairs. The products of the next step's S and dP and of this one's dK run while
// probabilities are computed.
#include "wam/kernels/cuda/attention_hopper.cuh"

namespace wam::cuda::attention {
namespace {

// Outer: K, V. Stages: Q, dO, and the queries' stats.
template <int kHead>
using DkvLayout = Layout<kHead, 2, 0, 2, kHead == 128 ? 3 : 6, 2>;

#ifdef WAM_HOPPER
__device__ __forceinline__ float part(const float2& two, int i) { return i == 0 ? two.x : two.y; }
#endif

template <int kHead, bool kBias>
__global__ void __launch_bounds__(DkvLayout<kHead>::kThreads, 1)
    dkv_kernel(const __grid_constant__ Problem p) {
#ifdef WAM_HOPPER
  using L = DkvLayout<kHead>;
  extern __shared__ char raw[];
  const Shared<L> shared(raw);
  shared.init(true);
  const AttentionArgs& a = p.args;
  if (threadIdx.x < hopper::kWarpgroup) {
    hopper::keep_registers<kProducerRegisters<2>>();
    if (threadIdx.x < kWarp) {
      produce<L>(p, shared, {{}, {&p.k, &p.v}, {&p.q, &p.dout}}, [&](const Item& item) {
        return Numbers{a.stats + first_query(a, item.batch, item.head),
                       a.batch * a.heads * a.queries, INFINITY, true};
      });
    }
    return;
  }
  hopper::take_registers<kConsumerRegisters<2>>();
  const Place place = place_of_thread();
  const float scale = a.scale * kLog2E;
  Ring<L::kStageCount> ring;
  Ring<2> outer;
  while (true) {
    barrier_wait(shared.outer_full(outer.at), outer.full_parity());
    const int steps = uniform(shared.outer_info(outer.at).steps);
    const int rows = uniform(shared.outer_info(outer.at).count);
    if (rows == 0) break;
    if (rows <= place.group * kRows) {
      skip_steps(shared, ring, steps);
      barrier_arrive_warp(shared.outer_empty(outer.at));
      outer.next();
      continue;
    }
    float dk[kHead / 2] = {}, dv[kHead / 2] = {}, bias[2] = {0, 0};
    if constexpr (kBias) {
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
      const float* stats = shared.numbers(ring.at) + place.column;
      float2 number[8];  // the queries' lse, then delta
#pragma unroll
      for (int j = 0; j < 8; ++j) number[j] = *reinterpret_cast<const float2*>(stats + 8 * j);
      hopper::products_wait<kAfterS>();
      if constexpr (!kBias) {
#pragma unroll
        for (int e = 0; e < 32; ++e) s[e] = fmaf(s[e], scale, -part(number[e / 4], e % 2));
      } else {
#pragma unroll
        for (int e = 0; e < 32; ++e) {
          s[e] = fmaf(s[e], scale, bias[e % 4 / 2] - part(number[e / 4], e % 2));
        }
      }
#pragma unroll
      for (int e = 0; e < 32; ++e) s[e] = hopper::exp2_fast(s[e]);
      pack(s, probabilities);
      hopper::products_begin();
      multiply_columns<kHead>(dv, probabilities, shared.stage(ring.at, 1));
      hopper::products_commit();
      const auto load_deltas = [&](int from) {
#pragma unroll
        for (int j = from; j < from + 4; ++j) {
          number[j] = *reinterpret_cast<const float2*>(stats + kRows + 8 * j);
        }
      };
      load_deltas(0);
      hopper::products_wait<1>();
      load_deltas(4);  // not before: there would not be registers enough
      if (kAfterS == 2) barrier_arrive_warp(shared.empty(before));
#pragma unroll
      for (int e = 0; e < 32; ++e) s[e] *= dp[e] - part(number[e / 4], e % 2);
      pack(s, ds);
      hopper::products_wait<0>();
      before = ring.at;
    };
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
      // Always zero. Without it the compiler keeps the addresses of all parts of k and v in
      // registers, for which others must go to local memory.
      const uint32_t zero = ring.round >> 31;
      multiply_rows<kHead>(s, k + zero, shared.stage(ring.at, 0));
      hopper::products_commit();
      multiply_columns<kHead>(dk, ds, shared.stage(before, 0));
      hopper::products_commit();
      multiply_rows<kHead>(dp, v + zero, shared.stage(ring.at, 1));
      hopper::products_commit();
      gradients.template operator()<2>();
    }
    hopper::products_begin();
    multiply_columns<kHead>(dk, ds, shared.stage(before, 0));
    hopper::products_commit();
    hopper::products_wait<0>();
    barrier_arrive_warp(shared.empty(before));
    ring.next();
    const OuterInfo item = shared.outer_info(outer.at);
    const int64_t at = item.batch * a.kv_batch + item.begin * a.kv_row + item.head * a.d;
    const int width = static_cast<int>(a.d);
    if (a.parts == 1) {
      store_rows<kHead>(dk, static_cast<bf16*>(a.dk) + at, a.kv_row, place, item.count, width,
                        a.scale, a.scale);
      store_rows<kHead>(dv, static_cast<bf16*>(a.dv) + at, a.kv_row, place, item.count, width, 1.0f,
                        1.0f);
    } else {
      float* partial = a.partial + item.part * a.batch * a.kv_batch + at;
      store_rows<kHead>(dk, partial, a.kv_row, place, item.count, width);
      store_rows<kHead>(dv, partial + a.heads * a.d, a.kv_row, place, item.count, width);
    }
    barrier_arrive_warp(shared.outer_empty(outer.at));
    outer.next();
  }
#endif
}

// dk, dv = sums over the parts in their order; four channels a thread.
__global__ void __launch_bounds__(256) sum_parts_kernel(AttentionArgs a) {
  const int64_t i = (int64_t{blockIdx.x} * 256 + threadIdx.x) * 4, count = a.batch * a.kv_batch;
  if (i >= count) return;
  float4 sum = *reinterpret_cast<const float4*>(a.partial + i);
  for (int64_t part = 1; part < a.parts; ++part) {
    const float4 x = *reinterpret_cast<const float4*>(a.partial + part * count + i);
    sum = {sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w};
  }
  const float factor = i % a.kv_row < a.heads * a.d ? a.scale : 1.0f;
  const __nv_bfloat162 low = __floats2bfloat162_rn(sum.x * factor, sum.y * factor);
  const __nv_bfloat162 high = __floats2bfloat162_rn(sum.z * factor, sum.w * factor);
  *reinterpret_cast<uint2*>(static_cast<bf16*>(a.dk) + i) = {
      reinterpret_cast<const uint32_t&>(low), reinterpret_cast<const uint32_t&>(high)};
}

}  // namespace

void launch_dkv(const Problem& problem, cudaStream_t stream) {
  dispatch(problem.args.d, problem.args.key_bias != nullptr, [&]<int kHead, bool kBias>() {
    launch<DkvLayout<kHead>>(dkv_kernel<kHead, kBias>, problem, "attention_dkv", stream);
  });
  const AttentionArgs& a = problem.args;
  if (a.parts == 1) return;
  const int64_t count = a.batch * a.kv_batch;
  WAM_CHECK(a.kv_row == 2 * a.heads * a.d && a.kv_batch == a.keys * a.kv_row)
      << "parts need dense rows";
  sum_parts_kernel<<<static_cast<unsigned>(ceil_div(count, 1024)), 256, 0, stream>>>(a);
  check_launch("attention_dkv_parts");
}

}  // namespace wam::cuda::attention
