#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
// Rounding through float, as the kernel's comment says.
double round_to(double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::kBF16) return bf16_to_float(float_to_bf16(narrow));
  if (dtype == DType::kF16) return f16_to_float(float_to_f16(narrow));
  return dtype == DType::kF32 ? narrow : value;
}

std::vector<Wide> reference(const RefArgs& args) {
  Wide y = args.output(0);
  for (size_t i = 0; i < y.data.size(); ++i) {
    y.data[i] = round_to(args.inputs[0].data[i], args.outputs[0].dtype);
  }
  return {y};
}
}  // namespace

void cast_cases(Tables& tables) {
  const auto with = [&](std::string label, Input input, const char* dtype) {
    tables.add({.op = &cast_op,
                .label = std::move(label),
                .attrs = {{"dtype", std::string(dtype)}},
                .inputs = {std::move(input)},
                .reference = reference});
  };
  const double infinity = HUGE_VAL;
  for (const char* dtype : {"f32", "bf16", "f16", "f64"}) {
    const std::string to = dtype;
    // Half-way cases of bf16 and f16 (1 + 2^-8, 1 + 3 * 2^-8, ...), overflow, subnormals,
    // infinities.
    with("special_to_" + to,
         constant(values(Shape{14},
                         {0.0, -0.0, 1.00390625, 1.01171875, 1.00048828125, 1.00146484375, 65519,
                          65520, 3.4e38, -3.3961775e38, 1e-40, 6e-8, infinity, std::nan("")})),
         dtype);
    with("many_to_" + to, constant(x({33, 1031})), dtype);
    for (const auto& [role, from] :
         {std::pair(Role::kBF16, "bf16"), std::pair(Role::kF16, "f16")}) {
      Input input = constant(x({67}));
      input.role = role;
      with(std::string(from) + "_to_" + to, input, dtype);
    }
  }
  with("differentiable", x({3, 5}), "float");
  with("empty", constant(x({0})), "bf16");
  tables.refuse({.op = &cast_op,
                 .label = "to_integers",
                 .attrs = {{"dtype", std::string("i32")}},
                 .inputs = {{DType::kF32, Shape{2}}}});
  tables.refuse({.op = &cast_op,
                 .label = "from_integers",
                 .attrs = {{"dtype", std::string("f32")}},
                 .inputs = {{DType::kI32, Shape{2}}}});
}

}  // namespace wam::conformance
