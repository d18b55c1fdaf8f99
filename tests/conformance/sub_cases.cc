#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void sub_cases(Tables& tables) {
  const Reference reference = map2([](double a, double b) { return a - b; },
                                   [](double a, double b) { return std::fabs(a) + std::fabs(b); });
  const auto with = [&](const char* label, Shape a, Shape b) {
    tables.add({.op = &sub_op,
                .label = label,
                .inputs = {x(a), x(b)},
                .errors = {elementwise(1)},
                .reference = reference});
  };
  with("one", Shape{1}, Shape{1});
  with("scalars", Shape{}, Shape{});
  with("same", Shape{3, 31}, Shape{3, 31});
  with("bias", Shape{5, 33}, Shape{33});
  with("two_dims", Shape{2, 3, 32}, Shape{3, 32});
  with("scalar", Shape{7, 9}, Shape{});
  with("empty", Shape{0, 4}, Shape{4});
  with("large", Shape{301, 193}, Shape{193});
  with("large_same", Shape{301, 193}, Shape{301, 193});
  const auto refuse = [&](const char* label, std::vector<TensorType> types) {
    tables.refuse({.op = &sub_op, .label = label, .inputs = std::move(types)});
  };
  const TensorType f32{DType::kF32, Shape{2, 3}};
  refuse("one_input", {f32});
  refuse("prefix", {f32, {DType::kF32, Shape{2}}});
  refuse("longer", {{DType::kF32, Shape{3}}, f32});
  refuse("two_types", {f32, {DType::kF64, Shape{3}}});
  refuse("integers", {{DType::kI32, Shape{2, 3}}, {DType::kI32, Shape{3}}});
}

}  // namespace wam::conformance
