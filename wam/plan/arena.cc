#include "wam/plan/arena.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace wam {
namespace {

int64_t rounded(int64_t bytes) {
  return std::max<int64_t>(kArenaAlignment, (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment);
}

struct Placed {
  int64_t offset, bytes;
  int32_t first, last;
};

// Buffers placed so far, sorted by offset, so that gaps are found in one sweep.
class Arena {
 public:
  // The smallest gap that fits among the buffers alive with [first, last]; the top if none does.
  int64_t place(int64_t bytes, int32_t first, int32_t last) {
    int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max(), end = 0;
    for (const Placed& other : placed_) {
      if (other.last < first || last < other.first) continue;
      const int64_t gap = other.offset - end;
      if (gap >= bytes && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, other.offset + other.bytes);
    }
    const int64_t offset = best >= 0 ? best : end;
    const Placed entry{offset, bytes, first, last};
    placed_.insert(std::ranges::upper_bound(placed_, offset, {}, &Placed::offset), entry);
    peak_ = std::max(peak_, offset + bytes);
    return offset;
  }
  int64_t peak() const { return peak_; }

 private:
  std::vector<Placed> placed_;
  int64_t peak_ = 0;
};

template <typename Key>
void try_order(std::span<const ArenaBuffer> buffers, const Key& key, ArenaAssignment& best) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return key(buffers[a]) > key(buffers[b]); });
  Arena arena;
  std::vector<int64_t> offsets(buffers.size());
  for (const size_t i : order) {
    offsets[i] = arena.place(rounded(buffers[i].bytes), buffers[i].first, buffers[i].last);
  }
  if (best.offsets.size() != buffers.size() || arena.peak() < best.peak) {
    best.offsets = std::move(offsets);
    best.peak = arena.peak();
  }
}

void measure_lower_bound(std::span<const ArenaBuffer> buffers, ArenaAssignment& result) {
  int32_t last_step = 0;
  for (const ArenaBuffer& buffer : buffers) last_step = std::max(last_step, buffer.last);
  std::vector<int64_t> change(static_cast<size_t>(last_step) + 2, 0);
  for (const ArenaBuffer& buffer : buffers) {
    change[static_cast<size_t>(buffer.first)] += rounded(buffer.bytes);
    change[static_cast<size_t>(buffer.last) + 1] -= rounded(buffer.bytes);
  }
  int64_t alive = 0;
  for (size_t step = 0; step < change.size(); ++step) {
    alive += change[step];
    if (alive > result.lower_bound) {
      result.lower_bound = alive;
      result.peak_step = static_cast<int32_t>(step);
    }
  }
}

}  // namespace

ArenaAssignment assign_arena(std::span<const ArenaBuffer> buffers) {
  ArenaAssignment best;
  try_order(buffers, [](const ArenaBuffer& b) { return static_cast<double>(b.bytes); }, best);
  try_order(buffers, [](const ArenaBuffer& b) { return static_cast<double>(b.bytes) * (b.last - b.first + 1); },
            best);
  try_order(buffers, [](const ArenaBuffer& b) { return -static_cast<double>(b.first); }, best);
  // Long-lived ones first settle at the bottom like a stack: what forward keeps for backward.
  try_order(buffers, [](const ArenaBuffer& b) { return static_cast<double>(b.last - b.first); }, best);
  measure_lower_bound(buffers, best);
  return best;
}

}  // namespace wam
