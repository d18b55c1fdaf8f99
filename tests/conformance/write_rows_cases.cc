#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {
namespace {

std::vector<Wide> reference(const RefArgs& args) {
  Wide y = args.inputs[0];
  const Wide& rows = args.inputs[1];
  for_each(rows.shape, [&](const Index& index, size_t place) {
    Index to = index;
    to[1] += args.attrs.integer("offset");
    y.data[flat(y.shape, to)] = rows.data[place];
  });
  return {y};
}

}  // namespace

void write_rows_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape buffer, int64_t count, int64_t offset) {
    tables.add({.op = &write_rows_op,
                .label = label,
                .attrs = {{"offset", offset}},
                .inputs = {x(buffer), x(Shape{buffer[0], count, buffer[2]})},
                .reference = reference});
  };
  with("one", Shape{1, 1, 1}, 1, 0);
  with("middle", Shape{2, 9, 31}, 3, 4);
  with("end", Shape{3, 5, 2}, 2, 3);
  with("nothing", Shape{2, 4, 3}, 0, 4);
  with("large", Shape{3, 201, 65}, 100, 50);
  const auto refuse = [&](const char* label, int64_t offset, Shape rows) {
    tables.refuse({.op = &write_rows_op,
                   .label = label,
                   .attrs = {{"offset", offset}},
                   .inputs = {{DType::kF32, Shape{2, 4, 3}}, {DType::kF32, rows}}});
  };
  refuse("beyond", 3, Shape{2, 2, 3});
  refuse("negative", -1, Shape{2, 2, 3});
  refuse("other_width", 0, Shape{2, 2, 4});
  refuse("other_batch", 0, Shape{1, 2, 3});
}

}  // namespace wam::conformance
