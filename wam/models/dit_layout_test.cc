#include "wam/models/dit_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace wam {
namespace {

DitConfig small_model() {
  DitConfig c = dit_5b();
  c.num_blocks = 3;
  c.actions_per_block = 4;
  c.latent_height = 4;
  c.latent_width = 6;
  return c;
}

bool attends_below(const DitLayout& layout, int64_t from, int64_t end) {
  return std::ranges::any_of(layout.rects, [&](const AttentionRect& rect) {
    return rect.q_begin >= from && rect.keys.front().begin < end;
  });
}

TEST(DitLayout, PlacesEveryPublicTokenOnce) {
  std::vector<int32_t> rows = make_layout(small_model(), TimestepLayout::kPerFrame).public_row;
  std::ranges::sort(rows);
  std::vector<int32_t> expected(static_cast<size_t>(small_model().sequence_length()));
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(rows, expected);
}

// Counted from the rule: s tokens a frame, K blocks of two frames, A actions and a state.
TEST(DitLayout, ComputesTheAllowedPairsAlone) {
  const DitConfig c = small_model();
  const int64_t s = c.tokens_per_frame(), a = c.actions_per_block;
  int64_t pairs = s * s + s * s;
  for (int64_t i = 0; i < c.num_blocks; ++i) {
    pairs += 2 * s * (3 + 2 * i) * s;
    pairs += (2 * s + a) * ((1 + 2 * i) * s + 2 * s + a + 1) + 1;
  }
  EXPECT_EQ(num_pairs(make_layout(c, TimestepLayout::kPerBlock).rects), pairs);
}

TEST(DitLayout, WithoutCleanContextNoNoisyTokenSeesACleanFrame) {
  const DitConfig c = small_model();
  const int64_t noisy = c.clean_tokens();
  EXPECT_TRUE(attends_below(make_layout(c, TimestepLayout::kPerBlock), noisy, noisy));
  const DitLayout without = make_layout(c, TimestepLayout::kPerBlock, false);
  EXPECT_FALSE(attends_below(without, noisy, noisy));
  EXPECT_EQ(without.public_row, make_layout(c, TimestepLayout::kPerBlock).public_row);
}

}  // namespace
}  // namespace wam
