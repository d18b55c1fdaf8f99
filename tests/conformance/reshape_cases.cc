#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void reshape_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape from, std::vector<int64_t> to) {
    tables.add({.op = &reshape_op,
                .label = label,
                .attrs = {{"shape", to}},
                .inputs = {x(from)},
                .reference = [](const RefArgs& args) {
                  Wide y = args.output(0);
                  y.data = args.inputs[0].data;
                  return std::vector<Wide>{y};
                }});
  };
  with("flat", Shape{3, 4}, {12});
  with("split", Shape{6, 5}, {2, 3, 5, 1});
  with("scalar", Shape{1, 1}, {});
  with("empty", Shape{0, 4}, {2, 0});
  tables.refuse({.op = &reshape_op,
                 .label = "other_count",
                 .attrs = {{"shape", std::vector<int64_t>{5}}},
                 .inputs = {{DType::kF32, Shape{2, 3}}}});
  tables.refuse({.op = &reshape_op,
                 .label = "negative",
                 .attrs = {{"shape", std::vector<int64_t>{-2, -3}}},
                 .inputs = {{DType::kF32, Shape{2, 3}}}});
}

}  // namespace wam::conformance
