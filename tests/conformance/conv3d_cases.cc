#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {
namespace {

std::vector<Wide> convolve(const RefArgs& args) {
  Wide y = args.output(0);
  y.magnitude.resize(y.data.size());
  const Wide &x = args.inputs[0], &w = args.inputs[1], &bias = args.inputs[2];
  const std::vector<int64_t>&stride = args.attrs.integers("stride"),
        &pad = args.attrs.integers("pad");
  for_each(y.shape, [&](const Index& at, size_t place) {
    Dot dot;
    dot.add(bias.data[static_cast<size_t>(at[4])]);
    if (args.inputs.size() == 4) dot.add(args.inputs[3].data[place]);
    const Shape taps{w.shape[1], w.shape[2], w.shape[3], w.shape[4]};
    for_each(taps, [&](const Index& k, size_t) {
      Index from = {at[0], 0, 0, 0, k[0]};
      for (size_t d = 0; d < 3; ++d) {
        from[d + 1] = at[d + 1] * stride[d] - pad[2 * d] + k[d + 1];
        if (from[d + 1] < 0 || from[d + 1] >= x.shape[static_cast<int>(d) + 1]) return;
      }
      dot.add(x.data[flat(x.shape, from)] * w.data[flat(w.shape, {at[4], k[0], k[1], k[2], k[3]})]);
    });
    y.data[place] = dot.sum;
    y.magnitude[place] = dot.size;
  });
  return {y};
}

}  // namespace

void conv3d_cases(Tables& t) {
  using List = std::vector<int64_t>;
  const auto add = [&](const std::string& label, const Shape& in, const Shape& w, List stride,
                       List pad) {
    t.add({.op = &conv3d_op,
           .label = label,
           .attrs = {{"stride", stride}, {"pad", pad}},
           .inputs = {x(in), x(w), x(Shape{w[0]})},
           .errors = {matmul(static_cast<double>(w.num_elements() / w[0]))},
           .reference = convolve});
  };
  const auto add_to = [&](const std::string& label, const Shape& in, const Shape& w, List pad) {
    const Shape y{in[0], in[1] + pad[0] + pad[1] - w[2] + 1, in[2] + pad[2] + pad[3] - w[3] + 1,
                  in[3] + pad[4] + pad[5] - w[4] + 1, w[0]};
    t.add({.op = &conv3d_op,
           .label = label,
           .attrs = {{"stride", List{1, 1, 1}}, {"pad", pad}},
           .inputs = {x(in), x(w), x(Shape{w[0]}), x(y)},
           .errors = {matmul(static_cast<double>(w.num_elements() / w[0]) + 1)},
           .reference = convolve});
  };
  const List one = {1, 1, 1}, none = {0, 0, 0, 0, 0, 0}, causal = {2, 0, 1, 1, 1, 1};
  add("pointwise", Shape{1, 1, 1, 1, 1}, Shape{1, 1, 1, 1, 1}, one, none);
  add("causal", Shape{2, 4, 5, 6, 3}, Shape{4, 3, 3, 3, 3}, one, causal);
  add("causal_one_frame", Shape{1, 1, 4, 3, 16}, Shape{17, 16, 3, 3, 3}, one, causal);
  add("causal_wide", Shape{1, 2, 9, 7, 32}, Shape{33, 32, 3, 3, 3}, one, causal);
  add("halve_picture", Shape{2, 2, 7, 8, 5}, Shape{6, 5, 1, 3, 3}, {1, 2, 2}, {0, 0, 0, 1, 0, 1});
  add("halve_time", Shape{1, 7, 2, 3, 8}, Shape{8, 8, 3, 1, 1}, {2, 1, 1}, none);
  add("time", Shape{2, 3, 2, 2, 4}, Shape{8, 4, 3, 1, 1}, one, {2, 0, 0, 0, 0, 0});
  // Widths of the tensor cores' tiles and around them, tiles that stick out, several blocks of k.
  add("tile_160", Shape{1, 2, 3, 9, 160}, Shape{160, 160, 1, 3, 3}, one, {0, 0, 1, 1, 1, 1});
  add("tile_96", Shape{1, 2, 3, 8, 96}, Shape{96, 96, 3, 3, 3}, one, causal);
  add("tile_320", Shape{2, 1, 5, 4, 72}, Shape{320, 72, 1, 3, 3}, one, {0, 0, 1, 1, 1, 1});
  add("many_boxes", Shape{2, 3, 9, 16, 24}, Shape{8, 24, 3, 3, 3}, one, causal);
  add("more_tiles_than_blocks", Shape{1, 1, 190, 190, 5}, Shape{8, 5, 1, 1, 1}, one, none);
  add("more_lines_than_blocks", Shape{1, 1, 180, 192, 17}, Shape{8, 17, 1, 1, 3}, one,
      {0, 0, 0, 0, 1, 1});
  add("first", Shape{1, 3, 6, 7, 12}, Shape{160, 12, 3, 3, 3}, one, causal);
  add("eight", Shape{5, 2, 3, 3, 8}, Shape{8, 8, 3, 3, 3}, one, causal);
  add("halve_picture_wide", Shape{2, 3, 10, 20, 40}, Shape{48, 40, 1, 3, 3}, {1, 2, 2},
      {0, 0, 0, 1, 0, 1});
  add("halve_time_wide", Shape{2, 9, 5, 6, 64}, Shape{72, 64, 3, 1, 1}, {2, 1, 1}, none);
  add("many_samples", Shape{19, 1, 2, 4, 16}, Shape{24, 16, 3, 3, 3}, one, causal);
  add_to("residual", Shape{2, 3, 4, 5, 3}, Shape{3, 3, 3, 3, 3}, causal);
  add_to("residual_wide", Shape{1, 2, 3, 8, 64}, Shape{128, 64, 3, 3, 3}, causal);
  add_to("residual_tail", Shape{1, 1, 7, 5, 32}, Shape{200, 32, 3, 3, 3}, causal);
  add("odd_pads", Shape{1, 4, 5, 5, 3}, Shape{2, 3, 2, 2, 2}, {3, 2, 3}, {1, 1, 0, 1, 1, 0});
  const TensorType in{DType::kF32, Shape{1, 2, 4, 4, 3}};
  const auto refuse = [&](const char* label, const Shape& w, List stride, List pad) {
    t.refuse({.op = &conv3d_op,
              .label = label,
              .attrs = {{"stride", stride}, {"pad", pad}},
              .inputs = {in, {DType::kF32, w}, {DType::kF32, Shape{w[0]}}}});
  };
  refuse("channels", Shape{2, 4, 1, 1, 1}, one, none);
  refuse("does_not_fit", Shape{2, 3, 3, 1, 1}, one, none);
  refuse("no_stride", Shape{2, 3, 1, 1, 1}, {0, 1, 1}, none);
  refuse("pad_not_below_kernel", Shape{2, 3, 1, 1, 1}, one, {1, 0, 0, 0, 0, 0});
  refuse("negative_pad", Shape{2, 3, 1, 3, 3}, one, {0, 0, -1, 0, 0, 0});
  t.refuse({.op = &conv3d_op,
            .label = "residual",
            .attrs = {{"stride", one}, {"pad", none}},
            .inputs = {in,
                       {DType::kF32, Shape{2, 3, 1, 1, 1}},
                       {DType::kF32, Shape{2}},
                       {DType::kF32, Shape{1, 2, 4, 4, 3}}}});
  refuse("short_lists", Shape{2, 3, 1, 1, 1}, {1, 1}, none);
  refuse("short_pad", Shape{2, 3, 1, 1, 1}, one, {0, 0, 0});
}

}  // namespace wam::conformance
