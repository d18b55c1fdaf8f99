// A block walks over a few tokens; each thread owns eight columns, so that table rows and sums stay
// in registers while the token's row changes. Statistics in f32: the mean first, then the squares
// around it. Bytes moved: each present tensor once. Sums over tokens: a block adds up at most
// token_norm_chunk() tokens of one table row in ascending order, then the parts are added in order.
#include "wam/kernels/cuda/reductions.h"
#include "wam/kernels/cuda/support.cuh"
#include "wam/kernels/cuda/token_norm.h"

namespace wam::cuda {
namespace {

constexpr int kMostThreads = 1024;

// ---- forward ----

template <typename T, bool kVector>
__global__ void __launch_bounds__(kMostThreads)
    token_norm_forward_kernel(TokenNormForward a, int64_t tokens_per_block) {
  __shared__ BlockSums<1> sums;
  const int64_t d = a.sizes.width, column = int64_t{threadIdx.x} * 8;
  const int64_t chunks = (a.sizes.length + tokens_per_block - 1) / tokens_per_block;
  const int64_t b = blockIdx.x / chunks, first = blockIdx.x % chunks * tokens_per_block;
  const int64_t last = min(a.sizes.length, first + tokens_per_block);
  const T *x = static_cast<const T*>(a.x), *o = static_cast<const T*>(a.o);
  const float inverse = 1.0f / static_cast<float>(d);
  float gate[8], up[8], by[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    gate[i] = 1;
    up[i] = 1;
    by[i] = 0;
  }
  if (a.weight != nullptr) {
    load8<T, kVector>(static_cast<const T*>(a.weight), column, d, up);
    load8<T, kVector>(static_cast<const T*>(a.bias), column, d, by);
  }
  Pack<T> next_x{}, next_o{};
  const auto fetch = [&](int64_t l) {
    const int64_t row = (b * a.sizes.length + l) * d;
    if (x != nullptr) next_x = load8<T, kVector>(x + row, column, d);
    if (o != nullptr) next_o = load8<T, kVector>(o + row, column, d);
  };
  fetch(first);
  int current = -1, slot = 0;
  for (int64_t l = first; l < last; ++l) {
    const Pack<T> pack_x = next_x, pack_o = next_o;
    if (l + 1 < last) fetch(l + 1);
    const int t = a.index == nullptr ? 0 : a.index[l];
    if (t != current) {
      current = t;
      const int64_t row = (b * a.sizes.num_rows + t) * d;
      if (a.gate != nullptr) load8<float, kVector>(a.gate + row, column, d, gate);
      if (a.scale != nullptr) {
        load8<float, kVector>(a.scale + row, column, d, up);
        load8<float, kVector>(a.shift + row, column, d, by);
#pragma unroll
        for (int i = 0; i < 8; ++i) up[i] += 1.0f;
      }
    }
    const int64_t token = b * a.sizes.length + l;
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      v[i] = x == nullptr ? 0.0f : wide(pack_x.v[i]);
      if (o != nullptr) v[i] += wide(pack_o.v[i]) * gate[i];
    }
    if (a.x_out != nullptr) {
      store8<T, kVector>(static_cast<T*>(a.x_out) + token * d, column, d, v);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] = rounded<T>(v[i]);
    }
    if (a.h == nullptr && a.stats == nullptr) continue;
    if (a.normalize) {
      float sum[1] = {0};
#pragma unroll
      for (int i = 0; i < 8; ++i) sum[0] += v[i];  // columns beyond the width are zero
      block_sum(sums, slot, sum);
      slot ^= 1;
      const float mean = sum[0] * inverse;
      sum[0] = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        v[i] -= mean;
        if (column + i < d) sum[0] += v[i] * v[i];
      }
      block_sum(sums, slot, sum);
      slot ^= 1;
      const float rstd = 1.0f / sqrtf(sum[0] * inverse + a.eps);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] *= rstd;
      if (a.stats != nullptr && threadIdx.x == 0) {
        a.stats[token * 2] = mean;
        a.stats[token * 2 + 1] = rstd;
      }
    }
    if (a.h == nullptr) continue;
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = v[i] * up[i] + by[i];
    store8<T, kVector>(static_cast<T*>(a.h) + token * d, column, d, v);
  }
}

// ---- which tokens a block sums: those of one table row, in order ----

// perm [length]: tokens sorted by row, stable; items: (start in perm, count, row); first [rows +
// 1]: first item of each row.
struct Schedule {
  const int32_t *perm = nullptr, *start = nullptr, *count = nullptr, *row = nullptr,
                *first = nullptr;
};

__global__ void __launch_bounds__(1024)
    token_schedule_kernel(const int32_t* index, int length, int rows, int chunk, int32_t* perm,
                          int32_t* start, int32_t* count, int32_t* row, int32_t* first) {
  extern __shared__ int32_t
      shared[];  // [rows] counts, [rows + 1] first token, [rows + 1] first item
  int32_t *counts = shared, *first_token = shared + rows, *first_item = first_token + rows + 1;
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  for (int t = warp; t < rows; t += warps) {
    int total = 0;
    for (int l = lane; l - lane < length; l += kWarp) {
      total += __popc(__ballot_sync(kAllLanes, l < length && index[l] == t));
    }
    if (lane == 0) counts[t] = total;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int tokens = 0, items = 0;
    for (int t = 0; t < rows; ++t) {
      first_token[t] = tokens;
      first_item[t] = items;
      tokens += counts[t];
      items += (counts[t] + chunk - 1) / chunk;
    }
    first_item[rows] = items;
  }
  __syncthreads();
  for (int t = static_cast<int>(threadIdx.x); t <= rows; t += static_cast<int>(blockDim.x)) {
    first[t] = first_item[t];
  }
  for (int t = warp; t < rows; t += warps) {
    int at = first_token[t];
    for (int l = lane; l - lane < length; l += kWarp) {
      const bool mine = l < length && index[l] == t;
      const unsigned votes = __ballot_sync(kAllLanes, mine);
      if (mine) perm[at + __popc(votes & ((1u << lane) - 1u))] = l;
      at += __popc(votes);
    }
    const int items = first_item[t + 1] - first_item[t];
    for (int k = lane; k < items; k += kWarp) {
      start[first_item[t] + k] = first_token[t] + k * chunk;
      count[first_item[t] + k] = min(chunk, counts[t] - k * chunk);
      row[first_item[t] + k] = t;
    }
  }
}

// ---- backward ----

// Partial sums, absent ones -1: places among the `slots` rows of an item.
struct PartialPlaces {
  int slots = 0, gate = -1, scale = -1, shift = -1;
};

struct BackwardLaunch {
  TokenNormBackward args;
  Schedule schedule;
  PartialPlaces places;
  float* partials = nullptr;  // [batch, items, slots, width]
  int64_t items = 0, chunk = 0;
};

template <typename T, bool kVector, int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks) token_norm_backward_kernel(BackwardLaunch p) {
  __shared__ BlockSums<2> sums;
  const TokenNormBackward& a = p.args;
  const int64_t d = a.sizes.width, column = int64_t{threadIdx.x} * 8;
  const int64_t b = blockIdx.y, item = blockIdx.x;
  int64_t start = item * p.chunk, count = min(p.chunk, a.sizes.length - start);
  int64_t t = 0;
  if (p.schedule.perm != nullptr) {
    if (item >= p.schedule.first[a.sizes.num_rows]) return;
    start = p.schedule.start[item];
    count = p.schedule.count[item];
    t = p.schedule.row[item];
  }
  const T *dh = static_cast<const T*>(a.dh), *dx_out = static_cast<const T*>(a.dx_out);
  const T *x = static_cast<const T*>(a.x), *o = static_cast<const T*>(a.o);
  const float inverse = 1.0f / static_cast<float>(d);
  float gate[8], up[8], dgate[8] = {}, dscale[8] = {}, dshift[8] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    gate[i] = 1;
    up[i] = 1;
  }
  const int64_t table = (b * a.sizes.num_rows + t) * d;
  if (a.gate != nullptr) load8<float, kVector>(a.gate + table, column, d, gate);
  if (a.scale != nullptr) {
    load8<float, kVector>(a.scale + table, column, d, up);
#pragma unroll
    for (int i = 0; i < 8; ++i) up[i] += 1.0f;
  }
  if (a.weight != nullptr) load8<T, kVector>(static_cast<const T*>(a.weight), column, d, up);
  Pack<T> next_dh{}, next_dx{}, next_x{}, next_o{};
  const auto token_of = [&](int64_t k) {
    return b * a.sizes.length +
           (p.schedule.perm == nullptr ? start + k : int64_t{p.schedule.perm[start + k]});
  };
  const auto fetch = [&](int64_t token) {
    const int64_t row = token * d;
    if (dh != nullptr) next_dh = load8<T, kVector>(dh + row, column, d);
    if (dx_out != nullptr) next_dx = load8<T, kVector>(dx_out + row, column, d);
    if (x != nullptr) next_x = load8<T, kVector>(x + row, column, d);
    if (o != nullptr) next_o = load8<T, kVector>(o + row, column, d);
  };
  int64_t next_token = 0;
  if (count > 0) {
    next_token = token_of(0);
    fetch(next_token);
  }
  int slot = 0;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t token = next_token;
    const Pack<T> pack_dh = next_dh, pack_dx = next_dx, pack_x = next_x, pack_o = next_o;
    if (k + 1 < count) {
      next_token = token_of(k + 1);
      fetch(next_token);
    }
    float dx[8];
    if (dh != nullptr) {
      const float mean = a.normalize ? a.stats[token * 2] : 0.0f;
      const float rstd = a.normalize ? a.stats[token * 2 + 1] : 1.0f;
      float n[8], sum[2] = {0, 0};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        n[i] = x == nullptr ? 0.0f : (wide(pack_x.v[i]) - mean) * rstd;
        const float g = wide(pack_dh.v[i]);
        dshift[i] += g;
        dscale[i] += g * n[i];
        dx[i] = g * up[i];
        sum[0] += dx[i];
        sum[1] += dx[i] * n[i];  // dh is zero beyond the width
      }
      if (a.normalize) {
        block_sum(sums, slot, sum);
        slot ^= 1;
        const float mean_g = sum[0] * inverse, mean_gn = sum[1] * inverse;
#pragma unroll
        for (int i = 0; i < 8; ++i) dx[i] = (dx[i] - mean_g - n[i] * mean_gn) * rstd;
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) dx[i] = 0;
    }
    if (dx_out != nullptr) {
#pragma unroll
      for (int i = 0; i < 8; ++i) dx[i] += wide(pack_dx.v[i]);
    }
    if (a.dx != nullptr) store8<T, kVector>(static_cast<T*>(a.dx) + token * d, column, d, dx);
    if (o != nullptr) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        dgate[i] += dx[i] * wide(pack_o.v[i]);
        dx[i] *= gate[i];
      }
      store8<T, kVector>(static_cast<T*>(a.d_o) + token * d, column, d, dx);
    }
  }
  float* rows = p.partials + (b * p.items + item) * p.places.slots * d;
  if (p.places.gate >= 0) store8<float, kVector>(rows + p.places.gate * d, column, d, dgate);
  if (p.places.scale >= 0) store8<float, kVector>(rows + p.places.scale * d, column, d, dscale);
  if (p.places.shift >= 0) store8<float, kVector>(rows + p.places.shift * d, column, d, dshift);
}

// ---- launchers ----

unsigned threads_for(int64_t width) {
  WAM_CHECK(width <= 8 * kMostThreads) << "rows of " << width << " elements; at most 8192";
  return static_cast<unsigned>(std::max<int64_t>(kWarp, round_up(ceil_div(width, 8), kWarp)));
}

bool can_vectorise(int64_t width, std::initializer_list<const void*> pointers) {
  return width % 8 == 0 && std::ranges::all_of(pointers, aligned16);
}

Schedule make_schedule(const TokenNormBackward& a, int64_t items, int64_t chunk,
                       cudaStream_t stream) {
  Schedule s;
  if (a.index == nullptr) return s;
  auto* at = static_cast<int32_t*>(a.workspace);
  const auto take = [&](int64_t count) {
    int32_t* begin = at;
    at += round_up(count, 4);
    return begin;
  };
  int32_t *perm = take(a.sizes.length), *start = take(items), *count = take(items),
          *row = take(items);
  int32_t* first = take(a.sizes.num_rows + 1);
  const int rows = static_cast<int>(a.sizes.num_rows);
  WAM_CHECK(rows <= 3500) << "table of " << rows << " rows; at most 3500";
  token_schedule_kernel<<<1, 1024, static_cast<size_t>(3 * rows + 2) * 4, stream>>>(
      a.index, static_cast<int>(a.sizes.length), rows, static_cast<int>(chunk), perm, start, count,
      row, first);
  check_launch("token_schedule");
  return {perm, start, count, row, first};
}

template <typename T>
void launch_backward(const BackwardLaunch& p, bool vector, cudaStream_t stream) {
  const unsigned threads = threads_for(p.args.sizes.width);
  const dim3 grid(static_cast<unsigned>(p.items), static_cast<unsigned>(p.args.sizes.batch));
  if (!vector) {
    token_norm_backward_kernel<T, false, kMostThreads, 1><<<grid, threads, 0, stream>>>(p);
  } else if (threads <= 384) {
    token_norm_backward_kernel<T, true, 384, 2><<<grid, threads, 0, stream>>>(p);
  } else if (threads <= 640) {
    token_norm_backward_kernel<T, true, 640, 1><<<grid, threads, 0, stream>>>(p);
  } else {
    token_norm_backward_kernel<T, true, kMostThreads, 1><<<grid, threads, 0, stream>>>(p);
  }
  check_launch("token_norm_backward");
}

SegmentSums segments_of(const BackwardLaunch& p, int place, float* out) {
  const TokenSizes& z = p.args.sizes;
  return {.partials = p.partials + place * z.width,
          .columns = z.width,
          .row_stride = p.places.slots * z.width,
          .batch = z.batch,
          .batch_stride = p.items,
          .first = p.schedule.first,
          .segments = z.num_rows,
          .rows = p.items,
          .out = out};
}

}  // namespace

void launch_token_norm_forward(DType dtype, const TokenNormForward& args, cudaStream_t stream) {
  const TokenSizes& z = args.sizes;
  if (z.tokens() == 0 || z.width == 0) return;
  const int64_t per_block = std::clamp<int64_t>(z.tokens() / 800, 1, 8);
  const auto blocks = static_cast<unsigned>(z.batch * ceil_div(z.length, per_block));
  const bool vector = can_vectorise(z.width, {args.x, args.o, args.gate, args.scale, args.shift,
                                              args.weight, args.bias, args.x_out, args.h});
  dispatch_float(dtype, [&]<typename T>() {
    if (vector) {
      token_norm_forward_kernel<T, true>
          <<<blocks, threads_for(z.width), 0, stream>>>(args, per_block);
    } else {
      token_norm_forward_kernel<T, false>
          <<<blocks, threads_for(z.width), 0, stream>>>(args, per_block);
    }
  });
  check_launch("token_norm_forward");
}

void launch_token_norm_backward(DType dtype, const TokenNormBackward& args, cudaStream_t stream) {
  const TokenSizes& z = args.sizes;
  if (z.width == 0 || z.batch == 0) return;
  BackwardLaunch p{.args = args, .items = token_norm_items(z), .chunk = token_norm_chunk(z)};
  p.schedule = make_schedule(args, p.items, p.chunk, stream);
  if (args.dgate != nullptr) p.places.gate = p.places.slots++;
  const bool scale = args.dscale != nullptr || args.dweight != nullptr;
  const bool shift = args.dshift != nullptr || args.dbias != nullptr;
  if (scale) p.places.scale = p.places.slots++;
  if (shift) p.places.shift = p.places.slots++;
  p.partials = reinterpret_cast<float*>(static_cast<std::byte*>(args.workspace) +
                                        token_norm_workspace(z, 0));
  const bool vector = can_vectorise(z.width, {args.dh, args.dx_out, args.x, args.o, args.gate,
                                              args.scale, args.weight, args.dx, args.d_o});
  if (p.items > 0 && z.length > 0) {
    dispatch_float(dtype, [&]<typename T>() { launch_backward<T>(p, vector, stream); });
  }
  if (args.dgate != nullptr) launch_segment_sums(segments_of(p, p.places.gate, args.dgate), stream);
  for (const auto& [place, table, whole] : {std::tuple{p.places.scale, args.dscale, args.dweight},
                                            std::tuple{p.places.shift, args.dshift, args.dbias}}) {
    if (table == nullptr && whole == nullptr) continue;
    SegmentSums sums = segments_of(p, place, table != nullptr ? table : whole);
    sums.join = table == nullptr;
    launch_segment_sums(sums, stream);
  }
}

}  // namespace wam::cuda
