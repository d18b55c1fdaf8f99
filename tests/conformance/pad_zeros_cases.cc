#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void pad_zeros_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t dim, int64_t before,
                        int64_t after) {
    tables.add({.op = &pad_zeros_op,
                .label = label,
                .attrs = {{"dim", dim}, {"before", before}, {"after", after}},
                .inputs = {x(shape)},
                .reference = gather([=](const RefArgs& args, const Index& index) {
                  Index from = index;
                  int64_t& i = from[static_cast<size_t>(dim)];
                  i -= before;
                  const int64_t size = args.inputs[0].shape[static_cast<int>(dim)];
                  return i < 0 || i >= size ? Index{} : from;
                })});
  };
  with("first", Shape{3, 7}, 0, 1, 2);
  with("last", Shape{5, 31}, 1, 0, 2);
  with("middle", Shape{3, 4, 5}, 1, 2, 0);
  with("of_nothing", Shape{3, 0}, 1, 1, 1);
  with("large", Shape{301, 64}, 1, 64, 65);
  const auto refuse = [&](const char* label, int64_t dim, int64_t before, int64_t after) {
    tables.refuse({.op = &pad_zeros_op,
                   .label = label,
                   .attrs = {{"dim", dim}, {"before", before}, {"after", after}},
                   .inputs = {{DType::kF32, Shape{3, 4}}}});
  };
  refuse("negative_before", 0, -1, 2);
  refuse("negative_after", 0, 1, -2);
  refuse("no_dim", 2, 0, 1);
}

}  // namespace wam::conformance
