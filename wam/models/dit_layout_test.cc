#include "wam/models/dit_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "wam/base/hash.h"
#include "wam/models/params.h"

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

TEST(DitLayout, GivesEveryTokenARowWhereNothingIsShared) {
  const DitConfig config = dit_5b();
  const DitLayout layout = make_layout(config, TimestepLayout::kPerToken);
  EXPECT_EQ(layout.num_rows, layout.length);
  for (size_t l = 0; l < layout.timestep_row.size(); ++l) EXPECT_EQ(layout.timestep_row[l], static_cast<int32_t>(l));
  // A frame's row is its first token's, an action's its own.
  for (int64_t f = 0; f < config.num_frames(); ++f) {
    EXPECT_EQ(frame_row(config, TimestepLayout::kPerToken, f),
              layout.noisy_tokens[static_cast<size_t>(f * config.tokens_per_frame())]);
  }
  for (int64_t i = 0; i < config.num_actions(); ++i) {
    EXPECT_EQ(action_row(config, TimestepLayout::kPerToken, i), layout.action_tokens[static_cast<size_t>(i)]);
  }
}

TEST(Params, InitialValuesAreThoseOfOneRandomAfterAnother) {
  for (const InitKind kind : {InitKind::kXavierUniform, InitKind::kUniformFanIn, InitKind::kNormal}) {
    const ParamPart part{.name = "blocks.0.w", .shape = Shape{7, 33}, .init = {.kind = kind, .scale = 0.5}};
    std::vector<float> values(231);
    initialise(part, 5, values);
    Random random(5, RandomUse::kWeightInit, 0, hash64(part.name));
    const double bound = uniform_bound(part);
    for (size_t i = 0; i < values.size(); ++i) {
      const double want =
          kind == InitKind::kNormal ? 0.5 * random.normal() : -bound + (bound - -bound) * random.uniform();
      ASSERT_EQ(values[i], static_cast<float>(want)) << i;
    }
  }
}

}  // namespace
}  // namespace wam
