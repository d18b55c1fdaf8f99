#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void broadcast_dim_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t dim, int64_t size) {
    tables.add({.op = &broadcast_dim_op,
                .label = label,
                .attrs = {{"dim", dim}, {"size", size}},
                .inputs = {x(shape)},
                .reference = gather([=](const RefArgs&, const Index& index) {
                  Index from = index;
                  from.erase(from.begin() + dim);
                  return from;
                })});
  };
  with("scalar", Shape{}, 0, 3);
  with("first", Shape{31}, 0, 4);
  with("last", Shape{3, 5}, 2, 33);
  with("middle", Shape{3, 5}, 1, 2);
  with("nothing", Shape{3}, 1, 0);
  with("large", Shape{21, 193}, 1, 20);
  const auto refuse = [&](const char* label, int64_t dim, int64_t size) {
    tables.refuse({.op = &broadcast_dim_op,
                   .label = label,
                   .attrs = {{"dim", dim}, {"size", size}},
                   .inputs = {{DType::kF32, Shape{2, 3}}}});
  };
  refuse("no_dim", 3, 1);
  refuse("negative_dim", -1, 1);
  refuse("negative_size", 0, -2);
}

}  // namespace wam::conformance
