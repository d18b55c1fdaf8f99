#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {
namespace {

std::vector<Wide> reference(const RefArgs& args) {
  Wide y = args.output(0);
  const std::vector<int64_t> offsets = args.attrs.integers("offsets");
  for (size_t i = 0; i < offsets.size(); ++i) {
    std::ranges::copy(args.inputs[i].data, y.data.begin() + offsets[i]);
  }
  return {y};
}

}  // namespace

void pack_cases(Tables& tables) {
  tables.add({.op = &pack_op,
              .label = "gaps",
              .attrs = {{"offsets", std::vector<int64_t>{3, 10, 40}}, {"size", 70}},
              .inputs = {x(Shape{7}), x(Shape{3, 9}), x(Shape{})},
              .reference = reference,
              .more_inputs_allowed = true});
  tables.add({.op = &pack_op,
              .label = "one",
              .attrs = {{"offsets", std::vector<int64_t>{0}}, {"size", 5000}},
              .inputs = {x(Shape{50, 100})},
              .reference = reference,
              .more_inputs_allowed = true});
  tables.refuse({.op = &pack_op,
                 .label = "overlap",
                 .attrs = {{"offsets", std::vector<int64_t>{0, 3}}, {"size", 70}},
                 .inputs = {{DType::kF32, Shape{4}}, {DType::kF32, Shape{4}}}});
  tables.refuse({.op = &pack_op,
                 .label = "too_long",
                 .attrs = {{"offsets", std::vector<int64_t>{0}}, {"size", 3}},
                 .inputs = {{DType::kF32, Shape{4}}}});
  tables.refuse({.op = &pack_op,
                 .label = "offsets",
                 .attrs = {{"offsets", std::vector<int64_t>{0, 4}}, {"size", 8}},
                 .inputs = {{DType::kF32, Shape{4}}}});
}

}  // namespace wam::conformance
