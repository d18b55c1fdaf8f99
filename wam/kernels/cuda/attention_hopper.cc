#include "wam/kernels/cuda/attention_hopper.h"

#include "wam/base/error.h"
#include "wam/kernels/cuda/support.h"

namespace wam::cuda {
namespace attention {
namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

// The driver's function, found at run time: the program must start where there is no driver.
EncodeTiled encoder() {
  static const EncodeTiled function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                           cudaEnableDefault, &result),
          "cuTensorMapEncodeTiled");
    WAM_CHECK(result == cudaDriverEntryPointSuccess && found != nullptr)
        << "the driver has no cuTensorMapEncodeTiled";
    return reinterpret_cast<EncodeTiled>(found);
  }();
  return function;
}

struct Rows {
  int64_t count, stride, batch_stride;  // elements
};

// Heads of d columns; boxes of 64 columns of a head and kAttentionStep rows, swizzled as
// hopper::descriptor has it.
CUtensorMap make_map(const void* base, const AttentionArgs& a, const Rows& rows) {
  const auto size = [](int64_t n) { return static_cast<cuuint64_t>(std::max<int64_t>(n, 1)); };
  const cuuint64_t sizes[4] = {size(a.d), size(a.heads), size(rows.count), size(a.batch)};
  const cuuint64_t strides[3] = {size(a.d) * 2, size(rows.stride) * 2, size(rows.batch_stride) * 2};
  const cuuint32_t box[4] = {64, 1, kAttentionStep, 1}, steps[4] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult result =
      encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(base), sizes, strides,
                box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  WAM_CHECK(result == CUDA_SUCCESS)
      << "cuTensorMapEncodeTiled: " << static_cast<int>(result) << " for " << rows.count
      << " rows of " << rows.stride << ", " << a.heads << " heads of " << a.d << " at " << base;
  return map;
}

}  // namespace

Problem make_problem(const AttentionArgs& a, const AttentionTiles& tiles) {
  const Rows queries{a.queries, a.q_row, a.q_batch}, keys{a.keys, a.kv_row, a.kv_batch};
  const int64_t width = a.heads * a.d;
  // A map must have an address even if nothing will be read through it.
  const bool empty = a.queries == 0;
  Problem p{};
  p.q = make_map(empty ? a.k : a.q, a, empty ? keys : queries);
  p.k = make_map(a.k, a, keys);
  p.v = make_map(a.v, a, keys);
  if (a.dout != nullptr && !empty) {
    const Rows rows{a.queries, width, a.queries * width};
    p.out = make_map(a.out, a, rows);
    p.dout = make_map(a.dout, a, rows);
  } else {
    p.out = p.dout = p.q;
  }
  p.args = a;
  p.tiles = tiles.tiles();
  p.ranges = tiles.ranges();
  p.counters = tiles.counters();
  p.num_tiles = tiles.count();
  p.wide = tiles.wide();
  p.items = static_cast<int>(tiles.count() * a.batch * a.heads);
  // Enough heads for some items a multiprocessor, but few, whose rows stay in the L2 cache; where
  // there are few items, all heads, so that the light items come last.
  constexpr int64_t kItemsTogether = 256, kFewItems = 1024;
  const int64_t heads = ceil_div(kItemsTogether, std::max(tiles.count(), 1));
  p.heads_together = static_cast<int>(p.items <= kFewItems ? a.heads : std::min(heads, a.heads));
  return p;
}

int multiprocessors() {
  static const int count = [] {
    int device = 0, number = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, device),
          "multiprocessors");
    return number;
  }();
  return count;
}

}  // namespace attention

void launch_hopper_attention(const AttentionArgs& a, const AttentionTiles& queries,
                             cudaStream_t stream) {
  attention::launch_forward(attention::make_problem(a, queries), stream);
}

void launch_hopper_attention_grad(const AttentionArgs& a, const AttentionTiles& queries,
                                  const AttentionTiles& keys, cudaStream_t stream) {
  attention::launch_dq(attention::make_problem(a, queries), stream);
  attention::launch_dkv(attention::make_problem(a, keys), stream);
}

}  // namespace wam::cuda
