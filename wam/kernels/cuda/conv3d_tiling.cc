// Which positions make a box: the choice that wastes the fewest rows, then the one that reads the
// fewest positions twice.
#include <algorithm>

#include "wam/kernels/cuda/conv3d.h"

namespace wam::cuda {
namespace {

constexpr int64_t kRows = 128, kMostExtent = 256;

int64_t parts_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

struct Box {
  int64_t size[4];
  double used, read;  // share of rows wanted; input positions fetched an output, halo counted once
  bool better_than(const Box& other) const {
    if (used > other.used * 1.02 || other.used > used * 1.02) return used > other.used;
    return read < other.read;
  }
};

Box box_of(const ConvSizes& z, const int64_t (&size)[4]) {
  Box box{{size[0], size[1], size[2], size[3]}, 1, 1};
  for (int d = 0; d < 4; ++d) {
    const int64_t there = d < 3 ? z.out[d] : z.batch;
    box.used *=
        static_cast<double>(there) / static_cast<double>(parts_of(there, size[d]) * size[d]);
    if (d < 3) {
      box.read *= static_cast<double>((size[d] - 1) * z.stride[d] + z.kernel[d]) /
                  static_cast<double>(size[d]);
    }
  }
  box.used *=
      static_cast<double>(size[0] * size[1] * size[2] * size[3]) / static_cast<double>(kRows);
  return box;
}

// The best of the boxes between `least` and `widest` positions wide.
Box best_box(const ConvSizes& z, int64_t least, int64_t widest) {
  Box best{{1, 1, 1, 1}, 0, 0};
  const auto most = [&](int d, int64_t room) {
    const int64_t there = d < 3 ? z.out[d] : z.batch, step = d < 3 ? z.stride[d] : 1;
    return std::min({there, room, kMostExtent / step});
  };
  for (int64_t w = least; w <= widest; ++w) {
    for (int64_t h = 1; h <= most(1, kRows / w); ++h) {
      for (int64_t t = 1; t <= most(2, kRows / (w * h)); ++t) {
        for (int64_t n = 1; n <= most(3, kRows / (w * h * t)); ++n) {
          const Box box = box_of(z, {w, h, t, n});
          if (box.better_than(best)) best = box;
        }
      }
    }
  }
  return best;
}

}  // namespace

ConvTiling conv_tiling(const ConvSizes& z) {
  // Fetching once for three taps pays for a few rows that are not wanted.
  constexpr int64_t kLineWidth = 8;
  constexpr double kLinesGain = 1.05;
  Box best = best_box(z, 1, std::min({z.out[0], kRows, kMostExtent / z.stride[0]}));
  bool lines = false;
  if (z.kernel[0] == 3 && z.stride[0] == 1) {
    const Box line = best_box(z, kLineWidth, kLineWidth);
    lines = line.used * kLinesGain > best.used;
    if (lines) best = line;
  }
  ConvTiling tiling{.lines = lines};
  std::ranges::copy(best.size, tiling.box);
  for (int d = 0; d < 4; ++d) {
    tiling.blocks[d] = parts_of(d < 3 ? z.out[d] : z.batch, best.size[d]);
  }
  // The widest of those that waste the fewest columns.
  int64_t fewest = 0;
  for (const int64_t columns : {160, 128, 96, 64}) {
    const int64_t padded = parts_of(z.out_channels, columns) * columns;
    if (tiling.columns == 0 || padded < fewest) {
      tiling.columns = columns;
      fewest = padded;
    }
  }
  tiling.efficiency = best.used * static_cast<double>(z.out_channels) / static_cast<double>(fewest);
  return tiling;
}

}  // namespace wam::cuda
