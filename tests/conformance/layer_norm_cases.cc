#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {

std::vector<Wide> forward(const RefArgs& args) {
  const Wide& in = args.inputs[0];
  const int64_t n = in.shape[-1];
  const bool affine = args.attrs.flag("affine");
  Wide y = args.output(0), stats = args.output(1);
  for (size_t place = 0; place < y.data.size(); ++place) {
    const auto row = static_cast<int64_t>(place) / n, i = static_cast<int64_t>(place) % n;
    const RowNorm norm = row_norm(in.data.data() + row * n, n, args.attrs.real("eps"));
    const double w = affine ? args.inputs[1].data[static_cast<size_t>(i)] : 1;
    const double b = affine ? args.inputs[2].data[static_cast<size_t>(i)] : 0;
    const double value = (in.data[place] - norm.mean) * norm.rstd;
    y.data[place] = value * w + b;
    // What cancels in x - mean (where mean is a sum of terms about as large as a deviation), once
    // directly and once through rstd.
    y.magnitude.push_back((std::fabs(value) + norm.offset + 1) * (1 + std::fabs(value)) *
                              std::fabs(w) +
                          std::fabs(b));
  }
  for (int64_t row = 0; row < in.shape.num_rows(); ++row) {
    const RowNorm norm = row_norm(in.data.data() + row * n, n, args.attrs.real("eps"));
    const auto at = static_cast<size_t>(row) * 2;
    stats.data[at] = norm.mean;
    stats.data[at + 1] = norm.rstd;
    stats.magnitude.insert(stats.magnitude.end(),
                           {std::fabs(norm.mean) + 1 / norm.rstd, norm.rstd * (1 + norm.offset)});
  }
  return {y, stats};
}

std::vector<Wide> backward(const RefArgs& args) {
  const Wide &dy = args.inputs[0], &in = args.inputs[1], &stats = args.inputs[2];
  const bool affine = args.attrs.flag("affine");
  const auto n = static_cast<size_t>(in.shape[-1]), rows = static_cast<size_t>(in.shape.num_rows());
  Wide dx = args.output(0);
  dx.data.clear();
  std::vector<Dot> dw(n), db(n);
  for (size_t row = 0; row < rows; ++row) {
    std::vector<double> g(dy.data.begin() + static_cast<int64_t>(row * n),
                          dy.data.begin() + static_cast<int64_t>((row + 1) * n));
    for (size_t i = 0; affine && i < n; ++i) g[i] *= args.inputs[3].data[i];
    const RowGradient r =
        row_gradient(g, in.data.data() + row * n, stats.data[row * 2], stats.data[row * 2 + 1]);
    dx.data.insert(dx.data.end(), r.dx.begin(), r.dx.end());
    dx.magnitude.insert(dx.magnitude.end(), r.dx_size.begin(), r.dx_size.end());
    for (size_t i = 0; i < n; ++i) {
      const double y = dy.data[row * n + i];
      dw[i].sum += y * r.z[i];
      dw[i].size += std::fabs(y) * r.z_size[i];
      db[i].add(y);
    }
  }
  if (!affine) return {dx};
  Wide w = args.output(1), b = args.output(2);
  for (size_t i = 0; i < n; ++i) {
    w.data[i] = dw[i].sum;
    b.data[i] = db[i].sum;
    w.magnitude.push_back(dw[i].size);
    b.magnitude.push_back(db[i].size);
  }
  return {dx, w, b};
}

void add_both(Tables& tables, const char* label, Shape shape, Fill fill) {
  const auto n = static_cast<double>(shape[-1]), rows = static_cast<double>(shape.num_rows());
  const Input in{.shape = shape, .fill = fill};
  const Shape weight{shape[-1]}, stats{shape.num_rows(), 2};
  for (const bool affine : {false, true}) {
    const std::string name = std::string(label) + (affine ? "_affine" : "");
    Case c{.op = &layer_norm_op,
           .label = name,
           .attrs = {{"affine", affine}, {"eps", 1e-6}},
           .inputs = {in},
           .errors = {reduction(n)},
           .reference = forward,
           .differentiable_outputs = {0}};
    Case grad{.op = &layer_norm_grad_op,
              .label = name,
              .attrs = {{"affine", affine}},
              .inputs = {x(shape), in, layer_stats_of(1, stats, 1e-6)},
              .errors = {reduction(n), reduction(rows)},
              .reference = backward};
    if (affine) {
      c.inputs.insert(c.inputs.end(), {x(weight), x(weight)});
      grad.inputs.push_back(x(weight));
    }
    tables.add(c);
    tables.add(grad);
  }
}

}  // namespace

void layer_norm_cases(Tables& tables) {
  add_both(tables, "two", Shape{1, 2}, {});
  add_both(tables, "odd", Shape{3, 31}, {});
  add_both(tables, "three_dims", Shape{2, 5, 33}, {});
  add_both(tables, "blocks", Shape{65, 32}, {.b = 3});
  add_both(tables, "far_from_zero", Shape{4, 64}, {.a = 100});
  add_both(tables, "no_rows", Shape{0, 8}, {});
  add_both(tables, "large", Shape{301, 193}, {});
  const TensorType in{DType::kF32, Shape{2, 3}}, w{DType::kF32, Shape{3}};
  const auto refuse = [&](const char* label, bool affine, double eps,
                          std::vector<TensorType> types) {
    tables.refuse({.op = &layer_norm_op,
                   .label = label,
                   .attrs = {{"affine", affine}, {"eps", eps}},
                   .inputs = std::move(types)});
  };
  refuse("scalar", false, 1e-6, {{DType::kF32, Shape{}}});
  refuse("weight_only", true, 1e-6, {in, w});
  refuse("other_weight", true, 1e-6, {in, {DType::kF32, Shape{2}}, w});
  refuse("negative_eps", false, -1.0, {in});
  tables.refuse({.op = &layer_norm_grad_op,
                 .label = "other_stats",
                 .attrs = {{"affine", false}},
                 .inputs = {in, in, {DType::kF32, Shape{3, 2}}}});
}

}  // namespace wam::conformance
