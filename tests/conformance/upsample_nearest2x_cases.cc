#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void upsample_nearest2x_cases(Tables& t) {
  const Reference repeat = gather([](const RefArgs&, const Index& at) {
    return Index{at[0], at[1], at[2] / 2, at[3] / 2, at[4]};
  });
  for (const Shape& shape :
       {Shape{1, 1, 1, 1, 1}, Shape{2, 3, 5, 7, 3}, Shape{1, 1, 4, 33, 16}, Shape{0, 2, 3, 4, 5}}) {
    t.add({.op = &upsample_nearest2x_op,
           .label = shape.to_string(),
           .inputs = {x(shape)},
           .reference = repeat});
  }
  t.refuse({.op = &upsample_nearest2x_op,
            .label = "dims",
            .inputs = {{DType::kF32, Shape{2, 3, 4, 5}}}});
}

}  // namespace wam::conformance
