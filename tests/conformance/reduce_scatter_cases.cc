#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void reduce_scatter_cases(Tables& tables) {
  const Attrs alone = {{"axis", "shard"}, {"ranks", 1}, {"wire", "f32"}};
  for (const int64_t size : {0, 1, 33, 5000}) {
    tables.add({.op = &reduce_scatter_op,
                .label = "alone_" + std::to_string(size),
                .attrs = alone,
                .inputs = {x(Shape{size})},
                .reference = gather([](const RefArgs&, const Index& i) { return i; })});
  }
  tables.refuse({.op = &reduce_scatter_op,
                 .label = "indivisible",
                 .attrs = {{"axis", "shard"}, {"ranks", 3}, {"wire", "f32"}},
                 .inputs = {{DType::kF32, Shape{4}}}});
  tables.refuse({.op = &reduce_scatter_op,
                 .label = "wire",
                 .attrs = {{"axis", "shard"}, {"ranks", 2}, {"wire", "bf16"}},
                 .inputs = {{DType::kF64, Shape{4}}}});
  tables.refuse({.op = &reduce_scatter_op,
                 .label = "integers",
                 .attrs = alone,
                 .inputs = {{DType::kI32, Shape{4}}}});
}

}  // namespace wam::conformance
