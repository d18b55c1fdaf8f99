#include "wam/ops/adamw.h"

#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {

// torch.optim.AdamW, element by element.
std::vector<Wide> reference(const RefArgs& args) {
  const std::vector<double>& s = args.inputs[4].data;
  const double lr = s[kAdamwLr], beta1 = args.attrs.real("beta1"), beta2 = args.attrs.real("beta2");
  Wide p = args.inputs[0], m = args.inputs[1], v = args.inputs[2];
  if (s[kAdamwSkip] != 0) return {p, m, v};
  for (size_t i = 0; i < p.data.size(); ++i) {
    const double g = args.inputs[3].data[i] * s[kAdamwClipFactor];
    const double m_size = std::fabs(m.data[i]) + std::fabs(g);
    v.magnitude.push_back(0);
    m.magnitude.push_back(m_size);
    m.data[i] = beta1 * m.data[i] + (1 - beta1) * g;
    v.data[i] = beta2 * v.data[i] + (1 - beta2) * g * g;
    const double denominator =
        std::sqrt(v.data[i]) / std::sqrt(s[kAdamwBiasCorrection2]) + args.attrs.real("eps");
    const double step = lr / s[kAdamwBiasCorrection1];
    p.magnitude.push_back(std::fabs(p.data[i]) + step * m_size / denominator);
    p.data[i] = p.data[i] * (1 - lr * s[kAdamwWeightDecay]) - step * m.data[i] / denominator;
  }
  return {p, m, v};
}

}  // namespace

void adamw_cases(Tables& tables) {
  const Attrs attrs{{"beta1", 0.95}, {"beta2", 0.999}, {"eps", 1e-8}};
  const auto with = [&](std::string label, Shape shape, std::vector<double> scalars) {
    tables.add({.op = &adamw_op,
                .label = std::move(label),
                .attrs = attrs,
                .inputs = {stat(shape), stat(shape), uniform(shape, 0, 2, Role::kStat), stat(shape),
                           values(Shape{kAdamwNumScalars}, std::move(scalars), Role::kF32)},
                .errors = {elementwise(8)},
                .reference = reference});
  };
  const std::vector<double> first = {1e-3, 0.05, 0.001, 1, 0, 0.01, 0, 0};
  const std::vector<double> later = {1e-2, 0.9, 0.1, 0.25, 0, 0.1, 0, 0};
  const std::vector<double> skip = {1e-2, 0.9, 0.1, 0.25, 1, 0.1, 0, 0};
  for (const Shape& shape : {Shape{1}, Shape{33}, Shape{0}, Shape{40001}}) {
    const std::string size = std::to_string(shape.num_elements());
    with("first_" + size, shape, first);
    with("later_" + size, shape, later);
    with("skip_" + size, shape, skip);
  }
  const TensorType p{DType::kF32, Shape{4}}, scalars{DType::kF32, Shape{8}};
  const auto refuse = [&](const char* label, double beta1, std::vector<TensorType> types) {
    tables.refuse({.op = &adamw_op,
                   .label = label,
                   .attrs = {{"beta1", beta1}, {"beta2", 0.999}, {"eps", 1e-8}},
                   .inputs = std::move(types)});
  };
  refuse("bf16", 0.9, {{DType::kBF16, Shape{4}}, p, p, p, scalars});
  refuse("other_gradient", 0.9, {p, p, p, {DType::kF32, Shape{5}}, scalars});
  refuse("seven_scalars", 0.9, {p, p, p, p, {DType::kF32, Shape{7}}});
  refuse("beta_of_one", 1.0, {p, p, p, p, scalars});
}

}  // namespace wam::conformance
