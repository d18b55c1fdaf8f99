#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {
namespace {

std::vector<Wide> average(const RefArgs& args) {
  Wide y = args.inputs[1];
  const Wide& x = args.inputs[0];
  const int64_t ft = args.attrs.integer("ft"), fs = args.attrs.integer("fs");
  const int64_t out = y.shape[4], group = x.shape[4] * ft * fs * fs / out;
  const int64_t pad = y.shape[1] * ft - x.shape[1];
  y.magnitude.assign(y.data.size(), 0);
  for_each(y.shape, [&](const Index& at, size_t place) {
    Dot dot;
    dot.add(y.data[place]);
    for (int64_t k = at[4] * group; k < (at[4] + 1) * group; ++k) {
      const Index from = {at[0], at[1] * ft + k / (fs * fs) % ft - pad, at[2] * fs + k / fs % fs,
                          at[3] * fs + k % fs, k / (ft * fs * fs)};
      if (from[1] >= 0) dot.add(x.data[flat(x.shape, from)] / static_cast<double>(group));
    }
    y.data[place] = dot.sum;
    y.magnitude[place] = dot.size;
  });
  return {y};
}

}  // namespace

void average_down_cases(Tables& t) {
  const auto add = [&](const char* label, const Shape& in, int64_t out, int64_t ft, int64_t fs) {
    const Shape y{in[0], (in[1] + ft - 1) / ft, in[2] / fs, in[3] / fs, out};
    t.add({.op = &average_down_op,
           .label = label,
           .attrs = {{"ft", ft}, {"fs", fs}},
           .inputs = {x(in), x(y)},
           .errors = {reduction(static_cast<double>(in[4] * ft * fs * fs / out) + 2)},
           .reference = average});
  };
  add("one", Shape{1, 1, 1, 1, 1}, 1, 1, 1);
  add("channels", Shape{2, 3, 2, 3, 6}, 3, 1, 1);
  add("pictures", Shape{2, 3, 4, 6, 8}, 8, 1, 2);
  add("pictures_and_time", Shape{2, 5, 4, 6, 8}, 16, 2, 2);
  add("even_time", Shape{1, 4, 2, 2, 16}, 32, 2, 2);
  add("wide_groups", Shape{1, 5, 4, 4, 6}, 4, 2, 2);
  add("odd", Shape{1, 2, 9, 3, 5}, 15, 2, 3);
  add("empty", Shape{0, 2, 2, 2, 4}, 4, 2, 2);
  const auto refuse = [&](const char* label, const Shape& in, const Shape& y, int64_t ft,
                          int64_t fs) {
    t.refuse({.op = &average_down_op,
              .label = label,
              .attrs = {{"ft", ft}, {"fs", fs}},
              .inputs = {{DType::kF32, in}, {DType::kF32, y}}});
  };
  refuse("odd_side", Shape{1, 1, 3, 2, 4}, Shape{1, 1, 1, 1, 4}, 1, 2);
  refuse("frames", Shape{1, 3, 2, 2, 4}, Shape{1, 1, 1, 1, 4}, 2, 2);
  refuse("groups", Shape{1, 1, 2, 2, 4}, Shape{1, 1, 1, 1, 5}, 1, 2);
  refuse("factors", Shape{1, 1, 2, 2, 4}, Shape{1, 1, 2, 2, 4}, 0, 1);
}

}  // namespace wam::conformance
