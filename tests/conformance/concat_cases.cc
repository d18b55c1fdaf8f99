#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  const auto dim = static_cast<size_t>(args.attrs.integer("dim"));
  Wide y = args.output(0);
  for_each(y.shape, [&](const Index& index, size_t place) {
    Index from = index;
    for (const Wide& part : args.inputs) {
      const int64_t size = part.shape[static_cast<int>(dim)];
      if (from[dim] < size) {
        y.data[place] = part.data[flat(part.shape, from)];
        return;
      }
      from[dim] -= size;
    }
  });
  return {y};
}
}  // namespace

void concat_cases(Tables& tables) {
  const auto with = [&](const char* label, int64_t dim, std::vector<Shape> shapes) {
    Case c{.op = &concat_op,
           .label = label,
           .attrs = {{"dim", dim}},
           .reference = reference,
           .more_inputs_allowed = true};
    for (const Shape& shape : shapes) c.inputs.push_back(x(shape));
    tables.add(std::move(c));
  };
  with("one", 0, {Shape{3}});
  with("first", 0, {Shape{2, 5}, Shape{1, 5}, Shape{3, 5}});
  with("last", 1, {Shape{3, 31}, Shape{3, 2}});
  with("middle", 1, {Shape{2, 3, 5}, Shape{2, 1, 5}});
  with("with_nothing", 1, {Shape{2, 3}, Shape{2, 0}, Shape{2, 1}});
  with("large", 1, {Shape{301, 64}, Shape{301, 129}});
  const auto refuse = [&](const char* label, int64_t dim, std::vector<TensorType> types) {
    tables.refuse(
        {.op = &concat_op, .label = label, .attrs = {{"dim", dim}}, .inputs = std::move(types)});
  };
  const TensorType f32{DType::kF32, Shape{2, 3}};
  refuse("other_sizes", 0, {f32, {DType::kF32, Shape{2, 4}}});
  refuse("other_ndim", 0, {f32, {DType::kF32, Shape{2, 3, 1}}});
  refuse("two_types", 0, {f32, {DType::kF64, Shape{2, 3}}});
  refuse("no_dim", 2, {f32, f32});
}

}  // namespace wam::conformance
