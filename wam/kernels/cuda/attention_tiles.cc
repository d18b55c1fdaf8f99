#include <algorithm>
#include <map>

#include "wam/kernels/cuda/attention.h"
#include "wam/kernels/cuda/support.h"

namespace wam::cuda {
namespace {

// Adds tiles of [begin, end) that see the ranges from `first` on. Equal parts, not a full tile and
// a small rest.
void add_tiles(std::vector<AttentionTile>& tiles, int64_t begin, int64_t end,
               const std::vector<AttentionRange>& ranges, size_t first, int64_t most_rows,
               int32_t part = 0) {
  int64_t steps = 0;
  for (size_t i = first; i < ranges.size(); ++i) {
    steps += std::max<int64_t>(1, ceil_div(ranges[i].count, kAttentionStep));
  }
  const int64_t parts = ceil_div(end - begin, most_rows), size = ceil_div(end - begin, parts);
  for (int64_t at = begin; at < end; at += size) {
    tiles.push_back({static_cast<int32_t>(at), static_cast<int32_t>(std::min(size, end - at)),
                     static_cast<int32_t>(first), static_cast<int32_t>(ranges.size() - first),
                     static_cast<int32_t>(steps), part});
  }
}

struct TileLists {
  std::vector<AttentionTile> tiles;
  std::vector<AttentionRange> ranges;
};
TileLists tiles_of_queries(std::span<const AttentionRect> rects, int64_t most_rows) {
  TileLists lists;
  for (const AttentionRect& rect : rects) {
    const size_t first = lists.ranges.size();
    for (const KeyRange& range : rect.keys) {
      lists.ranges.push_back(
          {static_cast<int32_t>(range.begin), static_cast<int32_t>(range.size())});
    }
    add_tiles(lists.tiles, rect.q_begin, rect.q_end, lists.ranges, first, most_rows);
  }
  return lists;
}

// Rough cost of forward: by a step of a tile, and as much again for about two steps per tile.
double cycles(std::span<const AttentionRect> rects, int64_t most_rows) {
  const double per_step = most_rows == kWideAttentionTile ? 2000 : 1650;
  double total = 0;
  for (const AttentionTile& tile : tiles_of_queries(rects, most_rows).tiles) {
    total += (tile.steps + 2) * per_step;
  }
  return total;
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
  counters_ = upload(std::vector<int32_t>(2, 0));
}

AttentionTiles::~AttentionTiles() {
  cudaFree(tiles_);
  cudaFree(ranges_);
  cudaFree(counters_);
}

std::shared_ptr<AttentionTiles> AttentionTiles::of_queries(std::span<const AttentionRect> rects) {
  const auto [tiles, ranges] = tiles_of_queries(rects, kAttentionTile);
  return std::shared_ptr<AttentionTiles>(new AttentionTiles(tiles, ranges));
}

std::shared_ptr<AttentionTiles> AttentionTiles::for_forward(std::span<const AttentionRect> rects,
                                                            DType dtype, int64_t d,
                                                            bool plain_scores) {
  // With few queries the larger items fill the card less evenly than they save.
  constexpr int64_t kFewQueries = 2048;
  const bool can_be_wide = has_hopper_attention(dtype, d) && d > 64 && plain_scores &&
                           !rects.empty() && rects.back().q_end >= kFewQueries;
  const bool wide =
      can_be_wide && cycles(rects, kWideAttentionTile) < cycles(rects, kAttentionTile);
  const auto [tiles, ranges] = tiles_of_queries(rects, wide ? kWideAttentionTile : kAttentionTile);
  std::shared_ptr<AttentionTiles> made(new AttentionTiles(tiles, ranges));
  made->wide_ = wide;
  return made;
}

std::shared_ptr<AttentionTiles> AttentionTiles::of_keys(std::span<const AttentionRect> rects,
                                                        int64_t keys, int64_t parts) {
  WAM_CHECK(parts == 1 || rects.size() == 1)
      << parts << " parts of " << rects.size() << " rectangles";
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
    if (ranges.size() == first) ranges.push_back({0, 0});  // nobody: their gradient is zero
    if (parts == 1) {
      add_tiles(tiles, cuts[i], cuts[i + 1], ranges, first, kAttentionTile);
      continue;
    }
    const AttentionRange all = ranges.back();
    ranges.pop_back();
    const int64_t size = ceil_div(ceil_div(all.count, kAttentionStep), parts) * kAttentionStep;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = std::min<int64_t>(part * size, all.count);
      ranges.push_back({static_cast<int32_t>(all.begin + begin),
                        static_cast<int32_t>(std::min(size, all.count - begin))});
      add_tiles(tiles, cuts[i], cuts[i + 1], ranges, ranges.size() - 1, kAttentionTile,
                static_cast<int32_t>(part));
    }
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
