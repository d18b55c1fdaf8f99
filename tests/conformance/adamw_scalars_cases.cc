#include <algorithm>

#include "tests/conformance/references.h"
#include "wam/ops/adamw.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {
namespace {

std::vector<Wide> reference(const RefArgs& args) {
  Wide y = args.inputs[0];
  const double norm = std::sqrt(args.inputs[1].data[0]), most = args.attrs.real("max_norm");
  const bool finite = std::isfinite(norm);
  const double factor = most == 0 ? 1 : std::min(1.0, most / (norm + 1e-6));
  y.data[kAdamwClipFactor] = finite ? factor : 0;
  if (!finite) y.data[kAdamwSkip] = 1;
  return {y};
}

}  // namespace

void adamw_scalars_cases(Tables& tables) {
  const auto with = [&](const char* label, double norm_squared, double max_norm) {
    const Input schedule =
        values(Shape{kAdamwNumScalars}, {1e-3, 0.05, 0.001, 1, 0, 0.01, 0, 0}, Role::kF32);
    tables.add({.op = &adamw_scalars_op,
                .label = label,
                .attrs = {{"max_norm", max_norm}},
                .inputs = {schedule, values(Shape{}, {norm_squared}, Role::kStat)},
                .errors = {elementwise(2)},
                .reference = reference});
  };
  with("small", 0.25, 1);
  with("clipped", 400, 1);
  with("zero", 0, 1);
  with("off", 400, 0);
  with("infinite", HUGE_VAL, 1);
  with("infinite_off", HUGE_VAL, 0);
  with("not_a_number", std::nan(""), 1);
  const TensorType schedule{DType::kF32, Shape{8}}, norm{DType::kF32, Shape{}};
  const auto refuse = [&](const char* label, double max_norm, std::vector<TensorType> types) {
    tables.refuse({.op = &adamw_scalars_op,
                   .label = label,
                   .attrs = {{"max_norm", max_norm}},
                   .inputs = std::move(types)});
  };
  refuse("seven", 1, {{DType::kF32, Shape{7}}, norm});
  refuse("f64_schedule", 1, {{DType::kF64, Shape{8}}, norm});
  refuse("two_norms", 1, {schedule, {DType::kF32, Shape{2}}});
  refuse("negative", -1, {schedule, norm});
}

}  // namespace wam::conformance
