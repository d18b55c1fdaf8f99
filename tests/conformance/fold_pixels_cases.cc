#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void fold_pixels_cases(Tables& t) {
  const auto add = [&](const char* label, const Shape& shape) {
    t.add({.op = &fold_pixels_op,
           .label = label,
           .attrs = {{"dtype", std::string("float")}},
           .inputs = {x(shape)},
           .reference = gather([](const RefArgs&, const Index& at) {
             const int64_t place = at[4] % 4;
             return Index{at[0], at[1], 2 * at[2] + place % 2, 2 * at[3] + place / 2, at[4] / 4};
           })});
  };
  add("one", Shape{1, 1, 2, 2, 1});
  add("pictures", Shape{2, 3, 6, 4, 3});
  add("wide", Shape{1, 2, 2, 10, 33});
  add("empty", Shape{1, 0, 2, 2, 3});
  t.refuse({.op = &fold_pixels_op,
            .label = "odd",
            .attrs = {{"dtype", std::string("f32")}},
            .inputs = {{DType::kF32, Shape{1, 1, 3, 2, 3}}}});
  t.refuse({.op = &fold_pixels_op,
            .label = "integers",
            .attrs = {{"dtype", std::string("i32")}},
            .inputs = {{DType::kF32, Shape{1, 1, 2, 2, 3}}}});
}

}  // namespace wam::conformance
