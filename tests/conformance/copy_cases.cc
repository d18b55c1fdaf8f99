#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void copy_cases(Tables& tables) {
  for (const Shape& shape : {Shape{}, Shape{3, 31}, Shape{0}, Shape{300, 301}}) {
    tables.add({.op = &copy_op,
                .label = "of_" + std::to_string(shape.num_elements()),
                .inputs = {x(shape)},
                .reference = gather([](const RefArgs&, const Index& i) { return i; })});
  }
  tables.refuse({.op = &copy_op, .label = "none"});
}

}  // namespace wam::conformance
