// Attention forward on tensor cores: S = Q K^T, softmax with a running maximum, O += P V. Q stays
// in registers. The scores of the next step are multiplied before this step's P V, whose time the
// softmax then fills.
#include "wam/kernels/cuda/attention_hopper.cuh"

namespace wam::cuda::attention {
namespace {

// Outer: Q. Stages: K, V, and the keys' biases.
template <int kHead, int kGroups>
using ForwardLayout = Layout<kHead, kGroups, 0, 1, kHead == 64 ? 8 : (kGroups == 2 ? 5 : 4), 1>;

#ifdef WAM_HOPPER

// Running maximum (of scores times c) and sum of a thread's two rows, and the step's rescaling.
struct Softmax {
  float most[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0}, factor[2];

  // s: scores in, probabilities relative to the new maximum out.
  __device__ __forceinline__ void step(float (&s)[32], float c) {
    float largest[2] = {-INFINITY, -INFINITY}, base[2];
#pragma unroll
    for (int e = 0; e < 32; ++e) largest[e % 4 / 2] = fmaxf(largest[e % 4 / 2], s[e]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float now = fmaxf(most[half], quad_max(largest[half]) * c);
      base[half] = now == -INFINITY ? 0.0f : now;
      factor[half] = hopper::exp2_fast(most[half] - base[half]);
      most[half] = now;
      total[half] *= factor[half];
    }
#pragma unroll
    for (int e = 0; e < 32; ++e) {
      s[e] = hopper::exp2_fast(fmaf(s[e], c, -base[e % 4 / 2]));
      total[e % 4 / 2] += s[e];
    }
  }
};

// s [queries, keys] * scale + biases, in the log2 domain. `bias`: of the step's keys, if any;
// `pairs`: the same of the thread's first row, with 8 rows `next_half` on.
__device__ __forceinline__ void scale_and_add(float (&s)[32], float scale, const float* bias,
                                              const float* pairs, int64_t next_half, int column,
                                              int keys) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int key = 8 * j + column;
    float2 b{0, 0};
    if (bias != nullptr) b = *reinterpret_cast<const float2*>(bias + key);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float &x = s[4 * j + 2 * half], &y = s[4 * j + 2 * half + 1];
      x = fmaf(x, scale, b.x * kLog2E);
      y = fmaf(y, scale, b.y * kLog2E);
    }
  }
  if (pairs == nullptr) return;
#pragma unroll 1
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int e = 0; e < 16; ++e) {
      const int key = e / 2 * 8 + column + e % 2;
      const float b = key < keys ? pairs[half * next_half + key] * kLog2E : 0.0f;
      if (half == 0) {
        s[e / 2 * 4 + e % 2] += b;
      } else {
        s[e / 2 * 4 + 2 + e % 2] += b;
      }
    }
  }
}

#endif

// kBias: there are biases, or a scale that is not positive.
template <int kHead, bool kBias, int kGroups>
__global__ void __launch_bounds__(ForwardLayout<kHead, kGroups>::kThreads, 1)
    forward_kernel(const __grid_constant__ Problem p) {
#ifdef WAM_HOPPER
  using L = ForwardLayout<kHead, kGroups>;
  extern __shared__ char raw[];
  const Shared<L> shared(raw);
  shared.init(p.args.key_bias != nullptr);
  constexpr bool kQInRegisters = kGroups == 2;
  const AttentionArgs& a = p.args;
  if (threadIdx.x < hopper::kWarpgroup) {
    hopper::keep_registers<kProducerRegisters<kGroups>>();
    if (threadIdx.x < kWarp) {
      produce<L>(p, shared, {{}, {&p.q}, {&p.k, &p.v}},
                 [&](const Item& item) { return key_biases(a, item); });
    }
    return;
  }
  hopper::take_registers<kConsumerRegisters<kGroups>>();
  const Place place = place_of_thread();
  // The maximum is taken before scaling where that is allowed.
  const float scale = a.scale * kLog2E, c = kBias ? 1.0f : scale;
  Ring<L::kStageCount> ring;
  Ring<2> outer;
  while (true) {
    barrier_wait(shared.outer_full(outer.at), outer.full_parity());
    const OuterInfo item = uniform(shared.outer_info(outer.at));
    if (item.count == 0) break;
    if (item.count <= place.group * kRows) {
      barrier_arrive_warp(shared.outer_empty(outer.at));
      outer.next();
      skip_steps(shared, ring, item.steps);
      continue;
    }
    const uint32_t q_shared = shared.outer(outer.at, 0, place.group);
    [[maybe_unused]] uint32_t q[kHead / 16][4];
    if constexpr (kQInRegisters) {
      load_rows<kHead>(q, q_shared);
      barrier_arrive_warp(shared.outer_empty(outer.at));
      outer.next();
    }
    const auto multiply_scores = [&](float(&s)[32]) {
      if constexpr (kQInRegisters) {
        multiply_rows<kHead>(s, q, shared.stage(ring.at, 0));
      } else {
        multiply_rows<kHead>(s, q_shared, shared.stage(ring.at, 0));
      }
      hopper::products_commit();
    };
    float o[kHead / 2] = {}, s[32];
    uint32_t probabilities[16];
    Softmax softmax;
    const auto probabilities_of = [&](const StepInfo& keys) {
      if constexpr (kBias) {
        const float *bias = nullptr, *pairs = nullptr;
        if (a.key_bias != nullptr) bias = shared.numbers(ring.at);
        int64_t next_half = 0;
        if (a.pair_bias != nullptr) {  // rows past the end read the last one's
          const int64_t last = a.queries - 1, query = item.begin + place.row;
          const int64_t at = item.head * a.queries + min(query, last);
          pairs = a.pair_bias + at * a.keys + keys.begin;
          next_half = (min(query + 8, last) - min(query, last)) * a.keys;
        }
        scale_and_add(s, scale, bias, pairs, next_half, place.column, keys.count);
      }
      if (keys.count < kRows) {
#pragma unroll
        for (int e = 0; e < 32; ++e) {
          if (e / 4 * 8 + place.column + e % 2 >= keys.count) s[e] = -INFINITY;
        }
      }
      softmax.step(s, c);
    };
    barrier_wait(shared.full(ring.at), ring.full_parity());
    hopper::products_begin();
    multiply_scores(s);
    hopper::products_wait<0>();
    probabilities_of(shared.step_info(ring.at));
    pack(s, probabilities);
#pragma unroll 1
    for (int step = 1; step < item.steps; ++step) {
      const int now = ring.at;
      ring.next();
      barrier_wait(shared.full(ring.at), ring.full_parity());
      hopper::products_begin();
      multiply_scores(s);
      multiply_columns<kHead>(o, probabilities, shared.stage(now, 1));
      hopper::products_commit();
      hopper::products_wait<1>();
      probabilities_of(shared.step_info(ring.at));
      hopper::products_wait<0>();
      barrier_arrive_warp(shared.empty(now));
#pragma unroll
      for (int e = 0; e < kHead / 2; ++e) o[e] *= softmax.factor[e % 4 / 2];
      pack(s, probabilities);
    }
    hopper::products_begin();
    multiply_columns<kHead>(o, probabilities, shared.stage(ring.at, 1));
    hopper::products_commit();
    hopper::products_wait<0>();
    barrier_arrive_warp(shared.empty(ring.at));
    ring.next();

    if constexpr (!kQInRegisters) {
      barrier_arrive_warp(shared.outer_empty(outer.at));
      outer.next();
    }
    const float sum0 = quad_sum(softmax.total[0]), sum1 = quad_sum(softmax.total[1]);
    const int64_t width = a.heads * a.d;
    bf16* out =
        static_cast<bf16*>(a.out) + (item.batch * a.queries + item.begin) * width + item.head * a.d;
    store_rows<kHead>(o, out, width, place, item.count, static_cast<int>(a.d), 1.0f / sum0,
                      1.0f / sum1);
    if (place.column == 0) {
      float* lse = a.lse + (item.batch * a.heads + item.head) * a.queries + item.begin;
      if (place.row < item.count) lse[place.row] = (softmax.most[0] + log2f(sum0)) * kLn2;
      if (place.row + 8 < item.count) lse[place.row + 8] = (softmax.most[1] + log2f(sum1)) * kLn2;
    }
  }
#endif
}

}  // namespace

void launch_forward(const Problem& problem, cudaStream_t stream) {
  const AttentionArgs& a = problem.args;
  const bool bias = a.key_bias != nullptr || a.pair_bias != nullptr || !(a.scale > 0);
  if (problem.wide) {
    WAM_CHECK(!bias && a.d > 64) << "wide tiles";
    return launch<ForwardLayout<128, 3>>(forward_kernel<128, false, 3>, problem, "attention",
                                         stream);
  }
  dispatch(a.d, bias, [&]<int kHead, bool kBias>() {
    launch<ForwardLayout<kHead, 2>>(forward_kernel<kHead, kBias, 2>, problem, "attention", stream);
  });
}

}  // namespace wam::cuda::attention
