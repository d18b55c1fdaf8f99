#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void broadcast_rows_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape from, std::vector<int64_t> to) {
    tables.add({.op = &broadcast_rows_op,
                .label = label,
                .attrs = {{"shape", to}},
                .inputs = {x(from)},
                .reference = [](const RefArgs& args) {
                  Wide y = args.output(0);
                  for (size_t i = 0; i < y.data.size(); ++i) {
                    y.data[i] = args.inputs[0].data[i % args.inputs[0].data.size()];
                  }
                  return std::vector<Wide>{y};
                }});
  };
  with("scalar", Shape{}, {33});
  with("rows", Shape{31}, {4, 31});
  with("two_dims", Shape{3, 5}, {2, 2, 3, 5});
  with("empty", Shape{3}, {0, 3});
  with("large", Shape{193}, {401, 193});
  tables.refuse({.op = &broadcast_rows_op,
                 .label = "no_suffix",
                 .attrs = {{"shape", std::vector<int64_t>{3, 2}}},
                 .inputs = {{DType::kF32, Shape{3}}}});
}

}  // namespace wam::conformance
