// The seam between two sublayers in one kernel: the residual stream takes up a sublayer's output,
// is normalised (layer norm without affine part) and prepared for the next sublayer:
//   x_out = x | x + o | x + o * gate[b, index[l]]            residual: "none" | "add" | "gate"
//   h     = n * (1 + scale[b, index[l]]) + shift[b, index[l]] norm: "modulate"
//         | n * w + b | absent                                norm: "affine" | "none"
// with n = (x_out - mean) * rstd. Same bits in f32 as gate, add, layer_norm, modulate one by one.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// What to do is read off which inputs are valid.
struct ResidualNormInputs {
  ValueId x;             // [B, L, D]
  ValueId o;             // [B, L, D]; invalid: no residual
  ValueId gate;          // [B, T, D] st; invalid: plain addition
  ValueId scale, shift;  // [B, T, D] st
  ValueId weight, bias;  // [D] of x's type; not together with scale and shift
  ValueId index;         // i32 [L]; needed by gate, scale and shift
};
struct ResidualNorm {
  ValueId x;      // x_out; the input itself without a residual
  ValueId h;      // [B, L, D]; invalid without a norm
  ValueId stats;  // [B*L, 2] st: mean, rstd of x_out; invalid without a norm
};
// eps is that of the layer norm. Either a residual or a norm must be asked for.
ResidualNorm residual_norm(Builder& b, const ResidualNormInputs& inputs, double eps);

// residual_norm_grad, emitted by the backward rule when a gradient of h arrives. Attributes as the
// forward op's, and `dx_out`: whether a gradient of x_out arrives, and `bias_grad`. Inputs in order:
//   dh, dx_out if so, x_out (x without a residual), stats,
//   o and gate if "gate", scale if "modulate", w if "affine", index if "gate" or "modulate".
// Outputs in order: dx [B, L, D]; do and dgate if "gate" (with "add" do is dx);
//   dscale and dshift if "modulate"; dw and db [D] st if "affine"; with `bias_grad` the sum of do (dx
//   where there is no do) over tokens [D] st: the gradient of the bias of a linear layer before the
//   seam.

}  // namespace wam
