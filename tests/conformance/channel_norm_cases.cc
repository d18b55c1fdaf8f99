#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {
namespace {

std::vector<Wide> normalise(const RefArgs& args) {
  Wide y = args.output(0);
  const auto channels = static_cast<size_t>(y.shape[-1]);
  for (size_t row = 0; row < y.data.size(); row += channels) {
    const double* x = args.inputs[0].data.data() + row;
    double square = 0;
    for (size_t c = 0; c < channels; ++c) square += x[c] * x[c];
    const double factor =
        std::sqrt(static_cast<double>(channels)) / std::max(std::sqrt(square), 1e-12);
    for (size_t c = 0; c < channels; ++c) {
      const double value = x[c] * factor * args.inputs[1].data[c];
      y.data[row + c] = args.attrs.flag("silu") ? silu_of(value) : value;
    }
  }
  // SiLU's slope times its argument is at most 1.1 times, for large negative ones |x| times, the
  // value.
  y.magnitude.resize(y.data.size());
  for (size_t i = 0; i < y.data.size(); ++i) {
    const size_t row = i / channels * channels;
    double square = 0;
    for (size_t c = 0; c < channels; ++c) square += std::pow(args.inputs[0].data[row + c], 2);
    const double value = args.inputs[0].data[i] * std::sqrt(static_cast<double>(channels)) /
                         std::max(std::sqrt(square), 1e-12) * args.inputs[1].data[i % channels];
    y.magnitude[i] = std::max(std::fabs(y.data[i]),
                              std::fabs(value * (args.attrs.flag("silu") ? silu_slope(value) : 1)));
  }
  return {y};
}

}  // namespace

void channel_norm_cases(Tables& t) {
  for (const bool silu : {false, true}) {
    const std::string end = silu ? "_silu" : "";
    const auto add = [&](const std::string& label, const Shape& shape, double size) {
      t.add({.op = &channel_norm_op,
             .label = label + end,
             .attrs = {{"silu", silu}},
             .inputs = {x(shape, size), x(Shape{shape[-1]})},
             .errors = {reduction(static_cast<double>(shape[-1]))},
             .reference = normalise});
    };
    add("one", Shape{1, 1}, 1);
    add("odd", Shape{2, 3, 33}, 1);
    add("wide", Shape{5, 128}, 20);
    add("zeros", Shape{3, 16}, 0);
    add("empty", Shape{0, 8}, 1);
  }
  t.refuse({.op = &channel_norm_op,
            .label = "gamma",
            .attrs = {{"silu", false}},
            .inputs = {{DType::kF32, Shape{2, 4}}, {DType::kF32, Shape{3}}}});
  t.refuse({.op = &channel_norm_op,
            .label = "types",
            .attrs = {{"silu", false}},
            .inputs = {{DType::kF32, Shape{2, 4}}, {DType::kF64, Shape{4}}}});
}

}  // namespace wam::conformance
