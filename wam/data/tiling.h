// Where the views of one moment lie in the tiled picture. Views have equal sizes h x w.
//   single        [0]
//   side_by_side  [0 | 1]
//   wrist_on_top  [2, every column twice] over [0 | 1]
//   grid_2x2      [0 | 2] over [1 | black]; with two views the right half is black
#pragma once

#include <cstdint>
#include <span>

#include "wam/data/embodiment.h"

namespace wam::data {

// Copies view number `view` [h, w, 3] into the picture [H, W, 3] at its place.
void place_view(Tiling tiling, int64_t view, int64_t h, int64_t w, std::span<const uint8_t> pixels,
                std::span<uint8_t> picture);
// Blackens what no view covers.
void blacken_unused(Tiling tiling, int64_t num_views, int64_t h, int64_t w,
                    std::span<uint8_t> picture);

}  // namespace wam::data
