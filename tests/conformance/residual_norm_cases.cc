#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {

constexpr double kEps = 1e-6;

struct Parts {
  std::string residual, norm;
  bool has_residual() const { return residual != "none"; }
  bool gated() const { return residual == "gate"; }
  bool has_norm() const { return norm != "none"; }
  bool modulated() const { return norm == "modulate"; }
  bool indexed() const { return gated() || modulated(); }
  std::string label() const { return residual + "_" + norm; }
};

struct Sizes {
  const char* label;
  Shape x;
  int64_t t;
  bool scattered = false;
  Shape table() const { return Shape{x[0], t, x[2]}; }
  Input index() const { return scattered ? below(x[1], t) : runs(x[1], t); }
};

Attrs attrs_of(const Parts& p) {
  return {{"eps", kEps}, {"norm", p.norm}, {"residual", p.residual}};
}

std::vector<Wide> forward(const RefArgs& args) {
  const Parts p{args.attrs.text("residual"), args.attrs.text("norm")};
  const Wide& in = args.inputs[0];
  const size_t index = args.inputs.size() - 1, d = static_cast<size_t>(in.shape[2]);
  const size_t norm = 1 + (p.has_residual() ? 1 : 0) + (p.gated() ? 1 : 0);  // place of scale or w
  Wide sum = in;
  sum.magnitude.assign(sum.data.size(), 0);
  for (size_t i = 0; i < sum.data.size(); ++i) {
    double term = p.has_residual() ? args.inputs[1].data[i] : 0;
    if (p.gated()) {
      term *= args.inputs[2].data[table_place(args, in.shape, args.inputs[2].shape, index, i)];
    }
    sum.magnitude[i] = std::fabs(sum.data[i]) + std::fabs(term);
    sum.data[i] += term;
  }
  std::vector<Wide> outputs;
  if (p.has_residual()) outputs.push_back(sum);
  if (!p.has_norm()) return outputs;
  Wide h = args.output(outputs.size()), stats = args.output(outputs.size() + 1);
  for (size_t row = 0; row * d < sum.data.size(); ++row) {
    const RowNorm r = row_norm(sum.data.data() + row * d, in.shape[2], kEps);
    stats.data[row * 2] = r.mean;
    stats.data[row * 2 + 1] = r.rstd;
    // Rounding of the sum moves mean and rstd too; relative to a row's deviation it stays small.
    stats.magnitude.insert(stats.magnitude.end(),
                           {std::fabs(r.mean) + 2 / r.rstd, r.rstd * (2 + r.offset)});
    for (size_t i = row * d; i < (row + 1) * d; ++i) {
      const size_t at =
          p.modulated() ? table_place(args, in.shape, args.inputs[norm].shape, index, i) : i % d;
      const double up = args.inputs[norm].data[at] + (p.modulated() ? 1 : 0);
      const double by = args.inputs[norm + 1].data[at], n = (sum.data[i] - r.mean) * r.rstd;
      h.data[i] = n * up + by;
      h.magnitude.push_back((std::fabs(n) + r.offset + 1 + sum.magnitude[i] * r.rstd) *
                                (1 + std::fabs(n)) *
                                (std::fabs(args.inputs[norm].data[at]) + (p.modulated() ? 1 : 0)) +
                            std::fabs(by));
    }
  }
  outputs.insert(outputs.end(), {h, stats});
  return outputs;
}

// The gradient's inputs, in the order of ops/residual_norm.h.
struct GradInputs {
  const Wide *dh, *dx_out = nullptr, *x, *stats, *o = nullptr, *gate = nullptr, *norm;
  size_t index;
};
GradInputs take(const RefArgs& args, const Parts& p) {
  size_t at = 0;
  GradInputs in{};
  in.dh = &args.inputs[at++];
  if (args.attrs.flag("dx_out")) in.dx_out = &args.inputs[at++];
  in.x = &args.inputs[at++];
  in.stats = &args.inputs[at++];
  if (p.gated()) {
    in.o = &args.inputs[at++];
    in.gate = &args.inputs[at++];
  }
  in.norm = &args.inputs[at++];
  in.index = at;
  return in;
}

void accumulate(Wide& sum, size_t at, double term, double size) {
  sum.magnitude.resize(sum.data.size(), 0);
  sum.data[at] += term;
  sum.magnitude[at] += size;
}

std::vector<Wide> backward(const RefArgs& args) {
  const Parts p{args.attrs.text("residual"), args.attrs.text("norm")};
  const GradInputs in = take(args, p);
  const Shape& shape = in.x->shape;
  const auto d = static_cast<size_t>(shape[2]);
  std::vector<Wide> out;
  for (size_t i = 0; i < args.outputs.size(); ++i) out.push_back(args.output(i));
  const size_t norm = p.gated() ? 3 : 1;
  const auto norm_place = [&](size_t place) {
    return p.modulated() ? table_place(args, shape, in.norm->shape, in.index, place) : place % d;
  };
  for (size_t first = 0; first < in.x->data.size(); first += d) {
    std::vector<double> g;
    for (size_t place = first; place < first + d; ++place) {
      g.push_back(in.dh->data[place] *
                  (in.norm->data[norm_place(place)] + (p.modulated() ? 1 : 0)));
    }
    const RowGradient r = row_gradient(g, in.x->data.data() + first, in.stats->data[first / d * 2],
                                       in.stats->data[first / d * 2 + 1]);
    for (size_t place = first; place < first + d; ++place) {
      const size_t i = place - first;
      const double direct = in.dx_out == nullptr ? 0 : in.dx_out->data[place];
      const double dx = direct + r.dx[i], size = std::fabs(direct) + r.dx_size[i];
      const double dh = in.dh->data[place];
      accumulate(out[0], place, dx, size);
      accumulate(out[norm], norm_place(place), dh * r.z[i], std::fabs(dh) * r.z_size[i]);
      accumulate(out[norm + 1], norm_place(place), dh, std::fabs(dh));
      const bool bias = args.attrs.flag("bias_grad");
      if (!p.gated()) {
        if (bias) accumulate(out.back(), i, dx, size);
        continue;
      }
      const size_t at = table_place(args, shape, in.gate->shape, in.index, place);
      const double gate = in.gate->data[at];
      accumulate(out[1], place, dx * gate, size * std::fabs(gate));
      accumulate(out[2], at, dx * in.o->data[place], size * std::fabs(in.o->data[place]));
      if (bias) accumulate(out.back(), i, dx * gate, size * std::fabs(gate));
    }
  }
  return out;
}

void add_forward(Tables& tables, const Parts& p, const Sizes& z) {
  Case c{.op = &residual_norm_op,
         .label = std::string(z.label) + "_" + p.label(),
         .attrs = attrs_of(p),
         .inputs = {x(z.x)},
         .errors = {reduction(static_cast<double>(z.x[2]))},
         .reference = forward};
  if (p.has_residual()) c.inputs.push_back(x(z.x));
  if (p.gated()) c.inputs.push_back(stat(z.table()));
  if (p.modulated()) c.inputs.insert(c.inputs.end(), 2, stat(z.table()));
  if (p.norm == "affine") c.inputs.insert(c.inputs.end(), 2, x(Shape{z.x[2]}));
  if (p.indexed()) c.inputs.push_back(z.index());
  if (p.has_residual()) c.differentiable_outputs.push_back(0);
  if (p.has_norm()) c.differentiable_outputs.push_back(p.has_residual() ? 1 : 0);
  tables.add(c);
}

void add_gradient(Tables& tables, const Parts& p, const Sizes& z, bool dx_out,
                  bool bias_grad = false) {
  Case c{.op = &residual_norm_grad_op,
         .label = std::string(z.label) + "_" + p.label() + (dx_out ? "_both" : "") +
                  (bias_grad ? "_bias" : ""),
         .attrs = attrs_of(p),
         .inputs = {x(z.x)},
         .reference = backward};
  c.attrs.set("dx_out", dx_out);
  if (bias_grad) c.attrs.set("bias_grad", true);
  if (dx_out) c.inputs.push_back(x(z.x));
  c.inputs.push_back(x(z.x));
  c.inputs.push_back(layer_stats_of(c.inputs.size() - 1, Shape{z.x[0] * z.x[1], 2}, kEps));
  if (p.gated()) c.inputs.insert(c.inputs.end(), {x(z.x), stat(z.table())});
  c.inputs.push_back(p.modulated() ? stat(z.table()) : x(Shape{z.x[2]}));
  if (p.indexed()) c.inputs.push_back(z.index());
  const auto n = static_cast<double>(z.x[2]), rows = static_cast<double>(z.x[0] * z.x[1]);
  c.errors = {reduction(n + rows)};
  tables.add(c);
}

void refuse_wrong(Tables& tables) {
  const TensorType in{DType::kF32, Shape{2, 4, 3}}, table{DType::kF32, Shape{2, 5, 3}};
  const TensorType index{DType::kI32, Shape{4}}, w{DType::kF32, Shape{3}};
  const auto refuse = [&](const char* label, const Parts& p, std::vector<TensorType> types) {
    tables.refuse({.op = &residual_norm_op,
                   .label = label,
                   .attrs = attrs_of(p),
                   .inputs = std::move(types)});
  };
  refuse("no_index", {"gate", "none"}, {in, in, table});
  refuse("other_o", {"add", "none"}, {in, {DType::kF32, Shape{2, 4, 2}}});
  refuse("other_gate", {"gate", "none"}, {in, in, {DType::kF32, Shape{1, 5, 3}}, index});
  refuse("weight_only", {"none", "affine"}, {in, w});
  refuse("other_weight", {"none", "affine"}, {in, w, {DType::kF32, Shape{4}}});
  refuse("other_shift", {"none", "modulate"}, {in, table, {DType::kF32, Shape{2, 4, 3}}, index});
  refuse("two_dims", {"add", "none"}, {{DType::kF32, Shape{4, 3}}, {DType::kF32, Shape{4, 3}}});
  Attrs attrs = attrs_of({"gate", "none"});
  attrs.set("dx_out", false);
  tables.refuse({.op = &residual_norm_grad_op,
                 .label = "no_norm",
                 .attrs = attrs,
                 .inputs = {in, in, {DType::kF32, Shape{8, 2}}, in, table, index}});
}

}  // namespace

void residual_norm_cases(Tables& tables) {
  const Sizes sizes[] = {{"two", Shape{1, 1, 2}, 1},
                         {"odd", Shape{2, 9, 31}, 3},
                         {"scattered", Shape{2, 67, 33}, 4, true},
                         {"no_tokens", Shape{2, 0, 4}, 2},
                         {"large", Shape{2, 101, 193}, 5},
                         {"eights", Shape{3, 67, 40}, 7, true},
                         {"full_width", Shape{1, 13, 3072}, 3, true}};
  for (const Sizes& z : sizes) {
    for (const char* residual : {"none", "add", "gate"}) {
      for (const char* norm : {"none", "affine", "modulate"}) {
        const Parts p{residual, norm};
        if (!p.has_residual() && !p.has_norm()) continue;
        add_forward(tables, p, z);
        if (!p.has_norm()) continue;
        add_gradient(tables, p, z, false);
        if (p.has_residual()) add_gradient(tables, p, z, true);
        if (p.has_residual()) add_gradient(tables, p, z, true, true);
      }
    }
  }
  refuse_wrong(tables);
}

}  // namespace wam::conformance
