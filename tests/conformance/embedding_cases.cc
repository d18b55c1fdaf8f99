#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void embedding_cases(Tables& t) {
  const auto reference = [](const RefArgs& args) {
    Wide y = args.output(0);
    const auto width = static_cast<size_t>(y.shape[-1]);
    for (size_t i = 0; i < y.data.size(); ++i) {
      y.data[i] =
          args.inputs[1]
              .data[static_cast<size_t>(args.inputs[0].data[i / width]) * width + i % width];
    }
    return std::vector<Wide>{y};
  };
  const auto add = [&](const std::string& label, const Shape& ids, int64_t vocab, int64_t width) {
    Input index = below(ids.num_elements(), vocab);
    index.shape = ids;
    t.add({.op = &embedding_op,
           .label = label,
           .inputs = {index, constant(x(Shape{vocab, width}))},
           .reference = reference});
  };
  add("one", Shape{1}, 1, 1);
  add("batch", Shape{2, 17}, 9, 33);
  add("empty", Shape{0}, 4, 3);
  const TensorType ids{DType::kI32, Shape{3}}, table{DType::kF32, Shape{5, 4}};
  t.refuse({.op = &embedding_op, .label = "ids_type", .inputs = {{DType::kI64, Shape{3}}, table}});
  t.refuse({.op = &embedding_op, .label = "table_dims", .inputs = {ids, {DType::kF32, Shape{5}}}});
  t.refuse(
      {.op = &embedding_op, .label = "table_type", .inputs = {ids, {DType::kI32, Shape{5, 4}}}});
}

}  // namespace wam::conformance
