#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void slice_rows_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t dim, int64_t begin, int64_t end) {
    tables.add({.op = &slice_rows_op,
                .label = label,
                .attrs = {{"dim", dim}, {"begin", begin}, {"end", end}},
                .inputs = {x(shape)},
                .reference = gather([=](const RefArgs&, const Index& index) {
                  Index from = index;
                  from[static_cast<size_t>(dim)] += begin;
                  return from;
                })});
  };
  with("first", Shape{5, 7}, 0, 1, 4);
  with("after_ones", Shape{1, 1, 9, 5}, 2, 2, 8);
  with("last", Shape{1, 33}, 1, 31, 33);
  with("nothing", Shape{3, 4}, 0, 3, 3);
  const auto refuse = [&](const char* label, Shape shape, int64_t dim, int64_t begin, int64_t end) {
    tables.refuse({.op = &slice_rows_op,
                   .label = label,
                   .attrs = {{"dim", dim}, {"begin", begin}, {"end", end}},
                   .inputs = {{DType::kF32, shape}}});
  };
  refuse("not_together", Shape{2, 4}, 1, 0, 2);
  refuse("beyond", Shape{3, 4}, 0, 0, 4);
  refuse("backwards", Shape{3, 4}, 0, 2, 1);
}

}  // namespace wam::conformance
