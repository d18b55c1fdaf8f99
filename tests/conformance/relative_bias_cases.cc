#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void relative_bias_cases(Tables& t) {
  const auto reference = [](const RefArgs& args) {
    Wide y = args.output(0);
    const int64_t heads = y.shape[0], queries = y.shape[1];
    for_each(y.shape, [&](const Index& at, size_t place) {
      const auto row = static_cast<int64_t>(
          args.inputs[1].data[static_cast<size_t>(at[2] - at[1] + queries - 1)]);
      y.data[place] = args.inputs[0].data[static_cast<size_t>(row * heads + at[0])];
    });
    return std::vector<Wide>{y};
  };
  const auto add = [&](const std::string& label, int64_t buckets, int64_t heads, int64_t queries,
                       int64_t keys) {
    t.add({.op = &relative_bias_op,
           .label = label,
           .attrs = {{"queries", queries}, {"keys", keys}},
           .inputs = {constant(x(Shape{buckets, heads})), below(queries + keys - 1, buckets)},
           .reference = reference});
  };
  add("one", 1, 1, 1, 1);
  add("square", 32, 4, 33, 33);
  add("wide", 5, 3, 2, 40);
  add("tall", 5, 3, 40, 2);
  const TensorType table{DType::kF32, Shape{4, 2}}, bucket{DType::kI32, Shape{6}};
  const auto refuse = [&](const char* label, int64_t queries, int64_t keys,
                          std::vector<TensorType> inputs) {
    t.refuse({.op = &relative_bias_op,
              .label = label,
              .attrs = {{"queries", queries}, {"keys", keys}},
              .inputs = std::move(inputs)});
  };
  refuse("bucket_length", 3, 3, {table, bucket});
  refuse("bucket_type", 3, 4, {table, {DType::kF32, Shape{6}}});
  refuse("no_queries", 0, 7, {table, bucket});
  refuse("table_dims", 3, 4, {{DType::kF32, Shape{4}}, bucket});
}

}  // namespace wam::conformance
