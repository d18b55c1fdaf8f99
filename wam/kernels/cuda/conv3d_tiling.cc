// Which positions make a box: the choice that wastes the fewest rows, then the one that reads the
// fewest positions twice. Then which kernel and how many columns, by the time they should take.
#include <algorithm>
#include <utility>
#include <vector>

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
  for (int64_t w = widest; w >= least; --w) {  // of equals the widest: whole lines of memory
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

// A tile's time for a step of the sum, relative to 128 columns, as measured: about proportional to
// the columns but for few, whose products wait for shared memory; an eighth more where every tap
// is fetched.
double tile_time(const ConvTiling& t) {
  const double time = t.columns == 160 ? 152 : t.columns == 128 ? 128 : t.columns == 96 ? 94 : 80;
  return t.lines ? time : 1.13 * time;
}

ConvTiling tiling_of(const ConvSizes& z, const Box& box, bool lines, int64_t columns) {
  ConvTiling t{.columns = columns, .lines = lines};
  std::ranges::copy(box.size, t.box);
  for (int d = 0; d < 4; ++d) t.blocks[d] = parts_of(d < 3 ? z.out[d] : z.batch, box.size[d]);
  return t;
}

// Rounds of tiles over the multiprocessors times a tile's time.
double cost_of(const ConvSizes& z, const ConvTiling& t) {
  constexpr int64_t kMultiprocessors = 132;
  const int64_t tiles = parts_of(t.boxes(), 2) * parts_of(z.out_channels, t.columns);
  return static_cast<double>(parts_of(tiles, kMultiprocessors)) * tile_time(t);
}

}  // namespace

std::vector<ConvTiling> conv_tilings(const ConvSizes& z) {
  constexpr int64_t kLineWidth = 8, kLineTaps = 3;
  std::vector<std::pair<Box, bool>> boxes = {
      {best_box(z, 1, std::min({z.out[0], kRows, kMostExtent / z.stride[0]})), false}};
  if (z.kernel[0] == kLineTaps && z.stride[0] == 1) {
    boxes.emplace_back(best_box(z, kLineWidth, kLineWidth), true);
  }
  std::vector<ConvTiling> all;
  for (const auto& [box, lines] : boxes) {
    for (const int64_t columns : {160, 128, 96, 64}) {
      all.push_back(tiling_of(z, box, lines, columns));
    }
  }
  return all;
}

ConvTiling conv_tiling(const ConvSizes& z) {
  const std::vector<ConvTiling> all = conv_tilings(z);
  return *std::ranges::min_element(all, {}, [&](const ConvTiling& t) { return cost_of(z, t); });
}

}  // namespace wam::cuda
