#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {

// Element (row, column) of a weight [N, K], stored [K, N] with `kn`.
double weight_at(const Wide& w, bool kn, size_t n, size_t k) {
  const auto columns = static_cast<size_t>(w.shape[-1]);
  return kn ? w.data[k * columns + n] : w.data[n * columns + k];
}

struct Sizes {
  size_t n, k;
};
Sizes sizes_of(const Wide& w, bool kn) {
  const auto a = static_cast<size_t>(w.shape[0]), b = static_cast<size_t>(w.shape[1]);
  return kn ? Sizes{b, a} : Sizes{a, b};
}

std::vector<Wide> forward(const RefArgs& args) {
  const bool kn = args.attrs.flag("kn");
  const auto [n, k] = sizes_of(args.inputs[1], kn);
  Wide y = args.output(0);
  for (size_t place = 0; place < y.data.size(); ++place) {
    Dot dot;
    for (size_t p = 0; p < k; ++p) {
      dot.add(args.inputs[0].data[place / n * k + p] * weight_at(args.inputs[1], kn, place % n, p));
    }
    if (args.inputs.size() == 3) dot.add(args.inputs[2].data[place % n]);
    y.data[place] = dot.sum;
    y.magnitude.push_back(dot.size);
  }
  return {y};
}

std::vector<Wide> dgrad(const RefArgs& args) {
  const bool kn = args.attrs.flag("kn");
  const auto [n, k] = sizes_of(args.inputs[1], kn);
  Wide dx = args.output(0);
  for (size_t place = 0; place < dx.data.size(); ++place) {
    Dot dot;
    for (size_t q = 0; q < n; ++q) {
      dot.add(args.inputs[0].data[place / k * n + q] * weight_at(args.inputs[1], kn, q, place % k));
    }
    dx.data[place] = dot.sum;
    dx.magnitude.push_back(dot.size);
  }
  return {dx};
}

std::vector<Wide> wgrad(const RefArgs& args) {
  const bool kn = args.attrs.flag("kn"), accumulate = args.attrs.flag("accumulate");
  const Wide &dy = args.inputs[0], &x = args.inputs[1];
  const auto n = static_cast<size_t>(dy.shape[-1]), k = static_cast<size_t>(x.shape[-1]);
  const auto rows = static_cast<size_t>(dy.shape.num_rows());
  std::vector<Wide> outputs;
  for (size_t i = 0; i < args.outputs.size(); ++i) {
    Wide out = args.output(i);
    for (size_t place = 0; place < out.data.size(); ++place) {
      Dot dot;
      if (accumulate) dot.add(args.inputs[2 + i].data[place]);
      const size_t column = i == 1 ? place : kn ? place % n : place / k;
      const size_t inner = kn ? place / n : place % k;
      for (size_t row = 0; row < rows; ++row) {
        dot.add(dy.data[row * n + column] * (i == 1 ? 1 : x.data[row * k + inner]));
      }
      out.data[place] = dot.sum;
      out.magnitude.push_back(dot.size);
    }
    outputs.push_back(out);
  }
  return outputs;
}

struct Product {
  const char* label;
  Shape rows;  // leading dims of x
  int64_t n, k;
};

Shape with(const Shape& rows, int64_t last) {
  std::vector<int64_t> dims(rows.dims().begin(), rows.dims().end());
  dims.push_back(last);
  return Shape(dims);
}

void add_all(Tables& tables, const Product& p, bool kn, bool bias) {
  const std::string label = std::string(p.label) + (kn ? "_kn" : "") + (bias ? "_bias" : "");
  const Shape weight = kn ? Shape{p.k, p.n} : Shape{p.n, p.k};
  Case c{.op = &linear_op,
         .label = label,
         .attrs = {{"kn", kn}},
         .inputs = {x(with(p.rows, p.k)), x(weight)},
         .errors = {matmul(static_cast<double>(p.k + 1))},
         .reference = forward};
  if (bias) c.inputs.push_back(x(Shape{p.n}));
  tables.add(c);
  const auto rows = static_cast<double>(p.rows.num_elements());
  for (const bool accumulate : {false, true}) {
    Case grad{.op = &linear_wgrad_op,
              .label = label + (accumulate ? "_more" : ""),
              .attrs = {{"bias", bias}, {"dtype", std::string("stat")}, {"kn", kn}},
              .inputs = {x(with(p.rows, p.n)), x(with(p.rows, p.k))},
              .errors = {matmul(rows + 1)},
              .reference = wgrad};
    if (accumulate) {
      grad.attrs.set("accumulate", true);
      grad.inputs.push_back(stat(weight));
      if (bias) grad.inputs.push_back(stat(Shape{p.n}));
    }
    tables.add(grad);
  }
  if (bias) return;
  tables.add({.op = &linear_dgrad_op,
              .label = label,
              .attrs = {{"kn", kn}},
              .inputs = {x(with(p.rows, p.n)), x(weight)},
              .errors = {matmul(static_cast<double>(p.n))},
              .reference = dgrad});
}

}  // namespace

void linear_cases(Tables& tables) {
  const Product products[] = {{"one", Shape{1}, 1, 1},      {"vector", Shape{}, 3, 5},
                              {"odd", Shape{2, 3}, 31, 33}, {"tall", Shape{65}, 7, 2},
                              {"no_rows", Shape{0}, 3, 4},  {"tiles", Shape{2, 161}, 70, 40},
                              {"wide", Shape{3}, 1100, 17}};
  for (const Product& p : products) {
    for (const bool kn : {false, true}) {
      for (const bool bias : {false, true}) add_all(tables, p, kn, bias);
    }
  }
  const TensorType in{DType::kF32, Shape{2, 3}}, w{DType::kF32, Shape{4, 3}};
  const auto refuse = [&](const OpDef& op, const char* label, std::vector<TensorType> types) {
    tables.refuse(
        {.op = &op, .label = label, .attrs = {{"kn", false}}, .inputs = std::move(types)});
  };
  refuse(linear_op, "other_k", {in, {DType::kF32, Shape{4, 2}}});
  refuse(linear_op, "other_bias", {in, w, {DType::kF32, Shape{3}}});
  refuse(linear_op, "weight_vector", {in, {DType::kF32, Shape{3}}});
  refuse(linear_op, "two_types", {in, {DType::kF64, Shape{4, 3}}});
  refuse(linear_op, "scalar", {{DType::kF32, Shape{}}, w});
  refuse(linear_dgrad_op, "other_n", {in, w});
  tables.refuse({.op = &linear_wgrad_op,
                 .label = "other_rows",
                 .attrs = {{"bias", false}, {"dtype", std::string("f32")}, {"kn", false}},
                 .inputs = {in, {DType::kF32, Shape{3, 5}}}});
  tables.refuse({.op = &linear_wgrad_op,
                 .label = "other_accumulator",
                 .attrs = {{"accumulate", true},
                           {"bias", false},
                           {"dtype", std::string("f32")},
                           {"kn", false}},
                 .inputs = {in, in, {DType::kF64, Shape{3, 3}}}});
}

}  // namespace wam::conformance
