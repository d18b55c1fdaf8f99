// Where the elements of 1 x 2 x 2 patches lie: shared by patchify and unpatchify.
#pragma once

#include "wam/kernels/cpu/support.h"

namespace wam::cpu {

struct PatchGrid {
  int64_t planes, height, width, channels;  // planes = batch * frames
  bool channel_first;
  int64_t rows() const { return planes * (height / 2); }  // rows of patches
  int64_t columns() const { return width / 2; }
};

inline PatchGrid patch_grid(const Shape& pixels, const Attrs& attrs) {
  return {pixels[0] * pixels[1], pixels[2], pixels[3], pixels[4],
          attrs.text("order") == "channel_first"};
}

// move(pixel offset, token offset) for every element of the patches of one row of patches.
template <typename Move>
void visit_patch_row(const PatchGrid& g, int64_t row, const Move& move) {
  const int64_t half = g.height / 2, plane = row / half, top = row % half * 2;
  for (int64_t column = 0; column < g.columns(); ++column) {
    const int64_t token = (row * g.columns() + column) * 4 * g.channels;
    for (int64_t corner = 0; corner < 4; ++corner) {
      const int64_t y = top + corner / 2, x = column * 2 + corner % 2;
      const int64_t pixel = ((plane * g.height + y) * g.width + x) * g.channels;
      if (g.channel_first) {
        for (int64_t c = 0; c < g.channels; ++c) move(pixel + c, token + c * 4 + corner);
      } else {
        for (int64_t c = 0; c < g.channels; ++c) move(pixel + c, token + corner * g.channels + c);
      }
    }
  }
}

}  // namespace wam::cpu
