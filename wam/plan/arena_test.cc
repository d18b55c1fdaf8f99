// The planner on random lifetimes: no two live buffers overlap, the peak is not below the bound.
#include "wam/plan/arena.h"

#include <gtest/gtest.h>

#include "wam/base/philox.h"

namespace wam {
namespace {

std::vector<ArenaBuffer> random_buffers(uint64_t index, int count, int steps) {
  Random random(5, RandomUse::kTest, 0, index);
  std::vector<ArenaBuffer> buffers;
  for (int i = 0; i < count; ++i) {
    const auto first = static_cast<int32_t>(random.below(static_cast<uint64_t>(steps)));
    const auto length = static_cast<int32_t>(random.below(static_cast<uint64_t>(steps)));
    buffers.push_back({static_cast<int64_t>(random.below(100000)), first,
                       std::min(first + length, static_cast<int32_t>(steps))});
  }
  return buffers;
}

void expect_valid(const std::vector<ArenaBuffer>& buffers, const ArenaAssignment& a) {
  ASSERT_EQ(a.offsets.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(a.offsets[i] % kArenaAlignment, 0);
    EXPECT_LE(a.offsets[i] + buffers[i].bytes, a.peak);
    for (size_t j = 0; j < i; ++j) {
      const bool together = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      const bool overlap = a.offsets[i] < a.offsets[j] + buffers[j].bytes &&
                           a.offsets[j] < a.offsets[i] + buffers[i].bytes;
      EXPECT_FALSE(together && overlap) << i << " and " << j;
    }
  }
  EXPECT_GE(a.peak, a.lower_bound);
}

TEST(Arena, NoTwoLiveBuffersOverlap) {
  for (uint64_t i = 0; i < 50; ++i) {
    const auto buffers = random_buffers(i, 1 + static_cast<int>(i) * 4, 3 + static_cast<int>(i));
    expect_valid(buffers, assign_arena(buffers));
  }
}

TEST(Arena, StackLikeLifetimesReachTheLowerBound) {
  // Forward keeps, backward releases: the shape of a training step.
  std::vector<ArenaBuffer> buffers;
  for (int i = 0; i < 30; ++i) {
    buffers.push_back({1000 * (1 + i % 3), i, 60 - i});
    buffers.push_back({5000, i, i + 1});
    buffers.push_back({7000, 60 - i - 1, 60 - i});
  }
  const ArenaAssignment a = assign_arena(buffers);
  expect_valid(buffers, a);
  EXPECT_LE(static_cast<double>(a.peak), 1.05 * static_cast<double>(a.lower_bound));
}

TEST(Arena, NothingNeedsNothing) { EXPECT_EQ(assign_arena({}).peak, 0); }

}  // namespace
}  // namespace wam
