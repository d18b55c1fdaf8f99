#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  const Wide& in = args.inputs[0];
  const int64_t rows = in.shape[2] / 2, columns = in.shape[3] / 2, channels = in.shape[4];
  const bool first = args.attrs.text("order") == "channel_first";
  Wide y = args.output(0);
  for_each(y.shape, [&](const Index& i, size_t place) {
    const int64_t frame = i[1] / (rows * columns), row = i[1] / columns % rows,
                  column = i[1] % columns;
    const int64_t corner = first ? i[2] % 4 : i[2] / channels;
    const int64_t channel = first ? i[2] / 4 : i[2] % channels;
    y.data[place] = in.data[flat(
        in.shape, {i[0], frame, 2 * row + corner / 2, 2 * column + corner % 2, channel})];
  });
  return {y};
}
}  // namespace

void patchify_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape) {
    for (const char* order : {"channel_first", "channel_last"}) {
      tables.add({.op = &patchify_op,
                  .label = std::string(label) + "_" + order,
                  .attrs = {{"dtype", std::string("float")}, {"order", std::string(order)}},
                  .inputs = {stat(shape)},
                  .errors = {elementwise(1)},
                  .reference = reference});
    }
  };
  with("one", Shape{1, 1, 2, 2, 1});
  with("even", Shape{2, 3, 4, 6, 5});
  with("odd", Shape{2, 2, 5, 7, 3});
  with("too_small", Shape{1, 2, 1, 4, 3});
  with("large", Shape{2, 3, 18, 22, 48});
  const auto refuse = [&](const char* label, const char* order, const char* dtype,
                          TensorType type) {
    tables.refuse({.op = &patchify_op,
                   .label = label,
                   .attrs = {{"dtype", std::string(dtype)}, {"order", std::string(order)}},
                   .inputs = {type}});
  };
  const TensorType pixels{DType::kF32, Shape{1, 1, 2, 2, 3}};
  refuse("order", "row_first", "f32", pixels);
  refuse("integers", "channel_first", "i32", pixels);
  refuse("four_dims", "channel_first", "f32", {DType::kF32, Shape{1, 2, 2, 3}});
}

}  // namespace wam::conformance
