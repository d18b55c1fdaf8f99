// The averaging shortcut of the Wan2.2 VAE: blocks of (c, t, y, x) of ft frames and fs x fs pixels,
// flattened, are averaged in as many groups as y has channels, and added to y. Time is padded with
// zeros on the left. Inference only.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// x [B, T, H, W, C], y [B, ceil(T / ft), H / fs, W / fs, O] -> as y; fs divides H and W, O divides
// C ft fs^2.
ValueId average_down(Builder& b, ValueId x, ValueId y, int64_t ft, int64_t fs);

}  // namespace wam
