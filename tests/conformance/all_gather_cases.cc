#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

// Several ranks are tried in tests/multirank; alone, an op is the identity.
void all_gather_cases(Tables& tables) {
  const Attrs alone = {{"axis", "shard"}, {"ranks", 1}};
  for (const int64_t size : {0, 1, 33, 5000}) {
    tables.add({.op = &all_gather_op,
                .label = "alone_" + std::to_string(size),
                .attrs = alone,
                .inputs = {x(Shape{size})},
                .reference = gather([](const RefArgs&, const Index& i) { return i; })});
  }
  tables.refuse({.op = &all_gather_op,
                 .label = "no_ranks",
                 .attrs = {{"axis", "shard"}, {"ranks", 0}},
                 .inputs = {{DType::kF32, Shape{4}}}});
  tables.refuse({.op = &all_gather_op,
                 .label = "no_axis",
                 .attrs = {{"axis", "pipeline"}, {"ranks", 2}},
                 .inputs = {{DType::kF32, Shape{4}}}});
  tables.refuse({.op = &all_gather_op,
                 .label = "matrix",
                 .attrs = alone,
                 .inputs = {{DType::kF32, Shape{4, 2}}}});
}

}  // namespace wam::conformance
