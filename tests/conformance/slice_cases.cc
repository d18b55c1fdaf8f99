#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void slice_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t dim, int64_t begin, int64_t end) {
    tables.add({.op = &slice_op,
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
  with("last", Shape{5, 33}, 1, 31, 33);
  with("middle", Shape{3, 9, 5}, 1, 2, 8);
  with("nothing", Shape{3, 4}, 1, 2, 2);
  with("large", Shape{301, 193}, 1, 64, 128);
  with("large_middle", Shape{7, 70, 193}, 1, 3, 66);
  const auto refuse = [&](const char* label, int64_t dim, int64_t begin, int64_t end) {
    tables.refuse({.op = &slice_op,
                   .label = label,
                   .attrs = {{"dim", dim}, {"begin", begin}, {"end", end}},
                   .inputs = {{DType::kF32, Shape{3, 4}}}});
  };
  refuse("backwards", 1, 3, 2);
  refuse("negative", 1, -1, 2);
  refuse("beyond", 1, 0, 5);
  refuse("no_dim", 2, 0, 1);
}

}  // namespace wam::conformance
