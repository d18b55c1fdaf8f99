#include <algorithm>
#include <map>

#include "wam/kernels/cuda/attention.h"
#include "wam/kernels/cuda/support.h"

namespace wam::cuda {
namespace {

// Adds tiles of [begin, end) that see the ranges from `first` on. Equal parts, not a full tile and
// a small rest.
void add_tiles(std::vector<AttentionTile>& tiles, int64_t begin, int64_t end,
               const std::vector<AttentionRange>& ranges, size_t first) {
  int64_t steps = 0;
  for (size_t i = first; i < ranges.size(); ++i) steps += ceil_div(ranges[i].count, kAttentionStep);
  const int64_t parts = ceil_div(end - begin, kAttentionTile), size = ceil_div(end - begin, parts);
  for (int64_t at = begin; at < end; at += size) {
    tiles.push_back({static_cast<int32_t>(at), static_cast<int32_t>(std::min(size, end - at)),
                     static_cast<int32_t>(first), static_cast<int32_t>(ranges.size() - first),
                     static_cast<int32_t>(steps)});
  }
}

template <typename T>
T* upload(const std::vector<T>& list) {
  T* device = nullptr;
  const size_t bytes = std::max<size_t>(list.size(), 1) * sizeof(T);
  check(cudaMalloc(reinterpret_cast<void**>(&device), bytes), "cudaMalloc of attention tiles");
  check(cudaMemcpy(device, list.data(), list.size() * sizeof(T), cudaMemcpyHostToDevice),
        "upload of attention tiles");
  return device;
}

}  // namespace

AttentionTiles::AttentionTiles(std::vector<AttentionTile> tiles,
                               const std::vector<AttentionRange>& ranges)
    : count_(static_cast<int>(tiles.size())) {
  std::ranges::stable_sort(tiles, std::ranges::greater{}, &AttentionTile::steps);
  tiles_ = upload(tiles);
  ranges_ = upload(ranges);
}

AttentionTiles::~AttentionTiles() {
  cudaFree(tiles_);
  cudaFree(ranges_);
}

std::shared_ptr<AttentionTiles> AttentionTiles::of_queries(std::span<const AttentionRect> rects) {
  std::vector<AttentionTile> tiles;
  std::vector<AttentionRange> ranges;
  for (const AttentionRect& rect : rects) {
    const size_t first = ranges.size();
    for (const KeyRange& range : rect.keys) {
      ranges.push_back({static_cast<int32_t>(range.begin), static_cast<int32_t>(range.size())});
    }
    add_tiles(tiles, rect.q_begin, rect.q_end, ranges, first);
  }
  return std::shared_ptr<AttentionTiles>(new AttentionTiles(std::move(tiles), ranges));
}

std::shared_ptr<AttentionTiles> AttentionTiles::of_keys(std::span<const AttentionRect> rects,
                                                        int64_t keys) {
  // Between two cuts all keys are read by the same rectangles.
  std::vector<int64_t> cuts = {0, keys};
  for (const AttentionRect& rect : rects) {
    for (const KeyRange& range : rect.keys) cuts.insert(cuts.end(), {range.begin, range.end});
  }
  std::ranges::sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
  std::vector<AttentionTile> tiles;
  std::vector<AttentionRange> ranges;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const size_t first = ranges.size();
    for (const AttentionRect& rect : rects) {
      const bool reads = std::ranges::any_of(rect.keys, [&](const KeyRange& range) {
        return range.begin <= cuts[i] && cuts[i] < range.end;
      });
      if (!reads) continue;
      const auto begin = static_cast<int32_t>(rect.q_begin);
      const auto count = static_cast<int32_t>(rect.num_queries());
      if (ranges.size() > first && ranges.back().begin + ranges.back().count == begin) {
        ranges.back().count += count;  // neighbours read on
      } else {
        ranges.push_back({begin, count});
      }
    }
    add_tiles(tiles, cuts[i], cuts[i + 1], ranges, first);
  }
  return std::shared_ptr<AttentionTiles>(new AttentionTiles(std::move(tiles), ranges));
}

bool has_hopper_attention(DType dtype, int64_t d) {
  static const bool hopper = [] {
    int device = 0, major = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
          "compute capability");
    return major == 9;
  }();
  return hopper && dtype == DType::kBF16 && d % 8 == 0 && d <= 128;
}

void launch_attention(const AttentionArgs& args, const AttentionTiles& queries,
                      cudaStream_t stream) {
  if (args.batch * args.heads * args.queries == 0) return;
  if (has_hopper_attention(args.dtype, args.d))
    return launch_hopper_attention(args, queries, stream);
  launch_plain_attention(args, queries, stream);
}

void launch_attention_grad(const AttentionArgs& args, const AttentionTiles& queries,
                           const AttentionTiles& keys, cudaStream_t stream) {
  if (args.batch * args.heads == 0) return;
  // Only frozen encoders have biases of pairs: their gradients may be slow.
  if (has_hopper_attention(args.dtype, args.d) && args.pair_bias == nullptr) {
    return launch_hopper_attention_grad(args, queries, keys, stream);
  }
  launch_plain_attention_grad(args, queries, keys, stream);
}

}  // namespace wam::cuda
