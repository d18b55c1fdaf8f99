// One AdamW step on flat buffers (Loshchilov & Hutter, 2019), as torch.optim.AdamW computes it:
//   g' = g * clip_factor; p *= 1 - lr * weight_decay
//   m += (1 - beta1) (g' - m); v = beta2 v + (1 - beta2) g'^2
//   p -= lr / bias_correction1 * m / (sqrt(v) / sqrt(bias_correction2) + eps)
// What changes from step to step lies in device memory, so that a captured program can be replayed.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// Elements of `scalars`, f32 [8]; the last two are unused.
enum AdamwScalar {
  kAdamwLr,
  kAdamwBiasCorrection1,  // 1 - beta1^t, t = 1 in the first step
  kAdamwBiasCorrection2,  // 1 - beta2^t
  kAdamwClipFactor,
  kAdamwSkip,  // not zero: p, m and v stay as they are, whatever g holds
  kAdamwWeightDecay,
  kAdamwNumScalars = 8
};

struct AdamwState {
  ValueId p, m, v;
};
struct AdamwOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};
// state and g: same shape and type, f32 or f64. The outputs may lie in the inputs' places.
AdamwState adamw(Builder& b, const AdamwState& state, ValueId g, ValueId scalars,
                 const AdamwOptions& options);

}  // namespace wam
