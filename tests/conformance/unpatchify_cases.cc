#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  const Wide& in = args.inputs[0];
  Wide y = args.output(0);
  const int64_t rows = y.shape[2] / 2, columns = y.shape[3] / 2, channels = y.shape[4];
  const bool first = args.attrs.text("order") == "channel_first";
  for_each(y.shape, [&](const Index& i, size_t place) {
    if (i[2] / 2 >= rows || i[3] / 2 >= columns) return;
    const int64_t token = (i[1] * rows + i[2] / 2) * columns + i[3] / 2;
    const int64_t corner = i[2] % 2 * 2 + i[3] % 2;
    const int64_t element = first ? i[4] * 4 + corner : corner * channels + i[4];
    y.data[place] = in.data[flat(in.shape, {i[0], token, element})];
  });
  return {y};
}
}  // namespace

void unpatchify_cases(Tables& tables) {
  const auto with = [&](const char* label, int64_t batch, int64_t f, int64_t h, int64_t w,
                        int64_t c) {
    for (const char* order : {"channel_first", "channel_last"}) {
      tables.add({.op = &unpatchify_op,
                  .label = std::string(label) + "_" + order,
                  .attrs = {{"dtype", std::string("stat")},
                            {"frames", f},
                            {"height", h},
                            {"order", std::string(order)},
                            {"width", w}},
                  .inputs = {x(Shape{batch, f * (h / 2) * (w / 2), 4 * c})},
                  .reference = reference});
    }
  };
  with("one", 1, 1, 2, 2, 1);
  with("even", 2, 3, 4, 6, 5);
  with("odd", 2, 2, 5, 7, 3);
  with("too_small", 1, 2, 1, 4, 3);
  with("large", 2, 3, 18, 23, 48);
  const auto refuse = [&](const char* label, int64_t height, Shape shape) {
    tables.refuse({.op = &unpatchify_op,
                   .label = label,
                   .attrs = {{"dtype", std::string("f32")},
                             {"frames", int64_t{1}},
                             {"height", height},
                             {"order", std::string("channel_last")},
                             {"width", int64_t{4}}},
                   .inputs = {{DType::kF32, shape}}});
  };
  refuse("other_tokens", 4, Shape{1, 3, 8});
  refuse("other_width", 4, Shape{1, 4, 6});
  refuse("negative", -4, Shape{1, 4, 8});
}

}  // namespace wam::conformance
