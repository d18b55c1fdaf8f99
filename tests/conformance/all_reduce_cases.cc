#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void all_reduce_cases(Tables& tables) {
  const Attrs alone = {{"axis", "world"}, {"ranks", 1}, {"wire", "f32"}};
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 31}, Shape{5000}}) {
    tables.add({.op = &all_reduce_op,
                .label = "alone_" + std::to_string(shape.num_elements()),
                .attrs = alone,
                .inputs = {x(shape)},
                .reference = gather([](const RefArgs&, const Index& i) { return i; })});
  }
  tables.refuse({.op = &all_reduce_op,
                 .label = "wire",
                 .attrs = {{"axis", "world"}, {"ranks", 2}, {"wire", "f16"}},
                 .inputs = {{DType::kF32, Shape{4}}}});
  tables.refuse({.op = &all_reduce_op,
                 .label = "integers",
                 .attrs = alone,
                 .inputs = {{DType::kI32, Shape{4}}}});
}

}  // namespace wam::conformance
