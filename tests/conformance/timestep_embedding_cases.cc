#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  const auto dim = static_cast<size_t>(args.attrs.integer("dim")), half = dim / 2;
  const bool cos_first = args.attrs.text("order") == "cos_sin";
  const bool f64 = args.outputs[0].dtype == DType::kF64;
  Wide y = args.output(0);
  for (size_t place = 0; place < y.data.size(); ++place) {
    const size_t i = place % dim % half;
    const double t = args.inputs[0].data[place / dim];
    const double angle =
        t * std::exp(-static_cast<double>(i) * std::log(10000.0) / static_cast<double>(half));
    const bool cosine = (place % dim < half) == cos_first;
    y.data[place] = cosine ? std::cos(angle) : std::sin(angle);
    // The angle itself is rounded in float64, by many units of it through pow and exp.
    y.magnitude.push_back(f64 ? 1 + 8 * std::fabs(angle) : 0);
  }
  return {y};
}
}  // namespace

void timestep_embedding_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t dim, const char* order) {
    tables.add({.op = &timestep_embedding_op,
                .label = label,
                .attrs = {{"dim", dim}, {"order", std::string(order)}},
                .inputs = {uniform(shape, 0, 1000, Role::kStat)},
                .errors = {elementwise(2)},
                .reference = reference});
  };
  with("scalar", Shape{}, 2, "cos_sin");
  with("video", Shape{2, 9}, 256, "cos_sin");
  with("action", Shape{3, 5}, 62, "sin_cos");
  with("none", Shape{0}, 4, "sin_cos");
  const auto refuse = [&](const char* label, int64_t dim, const char* order, DType dtype) {
    tables.refuse({.op = &timestep_embedding_op,
                   .label = label,
                   .attrs = {{"dim", dim}, {"order", std::string(order)}},
                   .inputs = {{dtype, Shape{2}}}});
  };
  refuse("odd", 3, "cos_sin", DType::kF32);
  refuse("zero", 0, "cos_sin", DType::kF32);
  refuse("order", 4, "tan", DType::kF32);
  refuse("bf16", 4, "cos_sin", DType::kBF16);
}

}  // namespace wam::conformance
