#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void permute_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, std::vector<int64_t> perm) {
    tables.add({.op = &permute_op,
                .label = label,
                .attrs = {{"perm", perm}},
                .inputs = {x(shape)},
                .reference = gather([=](const RefArgs&, const Index& index) {
                  Index from(index.size());
                  for (size_t i = 0; i < perm.size(); ++i) {
                    from[static_cast<size_t>(perm[i])] = index[i];
                  }
                  return from;
                })});
  };
  with("scalar", Shape{}, {});
  with("identity", Shape{3, 4}, {0, 1});
  with("transpose", Shape{31, 33}, {1, 0});
  with("one_row", Shape{1, 33}, {1, 0});
  with("heads", Shape{2, 5, 3, 8}, {0, 2, 1, 3});
  with("rotate", Shape{2, 3, 5}, {2, 0, 1});
  with("rotate_back", Shape{2, 3, 5}, {1, 2, 0});
  with("ones", Shape{1, 4, 1, 3}, {3, 2, 1, 0});
  with("reverse", Shape{2, 3, 4, 5}, {3, 2, 1, 0});
  with("patches", Shape{2, 3, 2, 3, 2, 4}, {0, 1, 3, 2, 4, 5});
  with("eight_dims", Shape{2, 1, 2, 2, 1, 2, 2, 3}, {7, 0, 6, 1, 5, 2, 4, 3});
  with("empty", Shape{3, 0, 2}, {2, 0, 1});
  with("large", Shape{257, 193}, {1, 0});
  with("large_planes", Shape{5, 70, 129}, {0, 2, 1});
  const auto refuse = [&](const char* label, std::vector<int64_t> perm) {
    tables.refuse({.op = &permute_op,
                   .label = label,
                   .attrs = {{"perm", std::move(perm)}},
                   .inputs = {{DType::kF32, Shape{2, 3}}}});
  };
  refuse("short", {0});
  refuse("repeated", {1, 1});
  refuse("outside", {0, 2});
  refuse("negative", {-1, 0});
}

}  // namespace wam::conformance
