// Tilings cover every output once and keep to what kernels and copy engine can do.
#include <gtest/gtest.h>

#include "wam/base/philox.h"
#include "wam/kernels/cuda/conv3d.h"

namespace wam::cuda {
namespace {

ConvSizes random_sizes(Random& random) {
  ConvSizes z{.batch = static_cast<int64_t>(1 + random.below(9u)),
              .channels = static_cast<int64_t>(8 * (1 + random.below(80u))),
              .out_channels = static_cast<int64_t>(8 * (1 + random.below(80u)))};
  for (int d = 0; d < 3; ++d) {
    z.in[d] = static_cast<int64_t>(3 + random.below(170u));
    z.kernel[d] = static_cast<int64_t>(1 + random.below(3u));
    z.stride[d] = static_cast<int64_t>(1 + random.below(2u));
    z.out[d] = (z.in[d] - z.kernel[d]) / z.stride[d] + 1;
  }
  return z;
}

void check_tiling(const ConvSizes& z, const ConvTiling& t) {
  int64_t rows = 1;
  for (int d = 0; d < 4; ++d) {
    const int64_t there = d < 3 ? z.out[d] : z.batch, step = d < 3 ? z.stride[d] : 1;
    ASSERT_GE(t.box[d], 1);
    EXPECT_GE(t.blocks[d] * t.box[d], there) << d;
    EXPECT_LT((t.blocks[d] - 1) * t.box[d], there) << d;
    EXPECT_LE(t.box[d] * step + (t.lines && d == 0 ? 2 : 0), 256) << d;
    rows *= t.box[d];
  }
  EXPECT_LE(rows, 128);
  EXPECT_TRUE(t.columns == 64 || t.columns == 96 || t.columns == 128 || t.columns == 160);
  if (!t.lines) return;
  EXPECT_EQ(t.box[0], 8);
  EXPECT_EQ(z.kernel[0], 3);
  EXPECT_EQ(z.stride[0], 1);
}

TEST(ConvTiling, CoversEveryOutputOnce) {
  Random random(1, RandomUse::kTest, 0, 0);
  for (int i = 0; i < 200; ++i) {
    const ConvSizes z = random_sizes(random);
    const std::vector<ConvTiling> all = conv_tilings(z);
    EXPECT_EQ(all.size(), z.kernel[0] == 3 && z.stride[0] == 1 ? 8u : 4u);
    for (const ConvTiling& t : all) check_tiling(z, t);
    check_tiling(z, conv_tiling(z));
  }
}

// The stages of the published autoencoders: no rows wasted where there are many.
TEST(ConvTiling, FitsTheLargeLayers) {
  ConvSizes z{.batch = 4, .channels = 160, .out_channels = 160};
  const int64_t in[3] = {160, 80, 33};
  for (int d = 0; d < 3; ++d) {
    z.in[d] = z.out[d] = in[d];
    z.kernel[d] = 3;
    z.stride[d] = 1;
  }
  const ConvTiling t = conv_tiling(z);
  EXPECT_TRUE(t.lines);
  EXPECT_EQ(t.columns, 160);
  EXPECT_EQ(t.boxes() * 128, z.out_rows());
}

}  // namespace
}  // namespace wam::cuda
