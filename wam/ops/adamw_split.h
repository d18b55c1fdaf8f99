// adamw() on a float32 master weight kept in two halves, 4 bytes instead of 6: `high`, its nearest
// bf16 (ties away from zero) and what the model computes with, and the signed rest `low`:
// master bits = (high bits << 16) + low. The same bits as adamw() on the joined weight.
#pragma once

#include "wam/graph/builder.h"
#include "wam/ops/adamw.h"

namespace wam {

struct AdamwSplitState {
  ValueId high;  // bf16
  ValueId low;   // i16
  ValueId m, v;  // f32
};
// All of one shape; g f32 or bf16. The outputs may lie in the inputs' places.
AdamwSplitState adamw_split(Builder& b, const AdamwSplitState& state, ValueId g, ValueId scalars,
                            const AdamwOptions& options);

}  // namespace wam
