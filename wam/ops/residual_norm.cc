#include "wam/ops/residual_norm.h"

#include "wam/base/check.h"
#include "wam/ops/add.h"
#include "wam/ops/cast.h"
#include "wam/ops/gate.h"
#include "wam/ops/layer_norm.h"
#include "wam/ops/modulate.h"
#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"
#include "wam/ops/sum_rows.h"

namespace wam {
namespace {

// What the attributes ask for.
struct Parts {
  bool residual, gate, norm, modulate, affine;
  bool index() const { return gate || modulate; }
};

Parts parts_of(const Attrs& attrs) {
  const std::string &residual = attrs.text("residual"), &norm = attrs.text("norm");
  WAM_CHECK(residual == "none" || residual == "add" || residual == "gate") << residual;
  WAM_CHECK(norm == "none" || norm == "modulate" || norm == "affine") << norm;
  WAM_CHECK(residual != "none" || norm != "none") << "nothing to do";
  return {residual != "none", residual == "gate", norm != "none", norm == "modulate",
          norm == "affine"};
}

// Takes a list of inputs apart, in order.
template <typename Id>
class Taker {
 public:
  explicit Taker(std::span<const Id> ids) : ids_(ids) {}
  Id take_if(bool present) { return present ? ids_[at_++] : Id{}; }

 private:
  std::span<const Id> ids_;
  size_t at_ = 0;
};

struct Forward {
  ResidualNormInputs in;
  Parts parts;
};
Forward take_forward(std::span<const ValueId> inputs, const Attrs& attrs) {
  const Parts p = parts_of(attrs);
  Taker<ValueId> taker(inputs);
  ResidualNormInputs in;
  in.x = taker.take_if(true);
  in.o = taker.take_if(p.residual);
  in.gate = taker.take_if(p.gate);
  in.scale = taker.take_if(p.modulate);
  in.shift = taker.take_if(p.modulate);
  in.weight = taker.take_if(p.affine);
  in.bias = taker.take_if(p.affine);
  in.index = taker.take_if(p.index());
  return {in, p};
}

struct Backward {
  ValueId dh, dx_out, x, stats, o, gate, scale, weight, index;
};
Backward take_backward(std::span<const ValueId> inputs, const Attrs& attrs) {
  const Parts p = parts_of(attrs);
  Taker<ValueId> taker(inputs);
  Backward in;
  in.dh = taker.take_if(true);
  in.dx_out = taker.take_if(attrs.flag("dx_out"));
  in.x = taker.take_if(true);
  in.stats = taker.take_if(true);
  in.o = taker.take_if(p.gate);
  in.gate = taker.take_if(p.gate);
  in.scale = taker.take_if(p.modulate);
  in.weight = taker.take_if(p.affine);
  in.index = taker.take_if(p.index());
  return in;
}

std::vector<ValueId> valid_only(std::initializer_list<ValueId> ids) {
  std::vector<ValueId> result;
  for (const ValueId id : ids) {
    if (id.valid()) result.push_back(id);
  }
  return result;
}

TensorType stats_type(const TensorType& x) {
  return {rules::grad_dtype(x.dtype), Shape{x.shape.num_rows(), 2}};
}

std::vector<TensorType> infer(const OpArgs& args) {
  const Parts p = parts_of(args.attrs);
  const size_t count =
      1 + (p.residual ? 1 : 0) + (p.gate ? 1 : 0) + (p.norm ? 2 : 0) + (p.index() ? 1 : 0);
  rules::count(args, count, count);
  rules::floating(args, 0);
  rules::ndim(args, 0, 3);
  rules::demand(args.attrs.real("eps") >= 0, args, "attribute eps >= 0");
  const TensorType& x = args.inputs[0];
  size_t at = 1;
  if (p.residual) rules::demand(args.inputs[at++] == x, args, "o of x's type");
  if (p.gate) rules::token_table(args, at++, count - 1);
  for (int i = 0; i < 2 && p.norm; ++i, ++at) {
    if (p.modulate) rules::token_table(args, at, count - 1);
    if (p.affine) {
      rules::demand(args.inputs[at] == TensorType{x.dtype, Shape{x.shape[2]}}, args,
                    "weight and bias [D] of x's dtype");
    }
  }
  if (p.modulate) {
    rules::demand(args.inputs[at - 1] == args.inputs[at - 2], args, "scale and shift of one type");
  }
  std::vector<TensorType> outputs;
  if (p.residual) outputs.push_back(x);
  if (p.norm) outputs.insert(outputs.end(), {x, stats_type(x)});
  return outputs;
}

std::vector<TensorType> infer_grad(const OpArgs& args) {
  const Parts p = parts_of(args.attrs);
  const bool dx_out = args.attrs.flag("dx_out");
  rules::demand(p.norm, args, "attribute 'norm' other than none");
  const size_t count = 3 + (dx_out ? 1 : 0) + (p.gate ? 2 : 0) + 1 + (p.index() ? 1 : 0);
  rules::count(args, count, count);
  rules::floating(args, 0);
  rules::ndim(args, 0, 3);
  const TensorType& x = args.inputs[0];
  size_t at = 1;
  if (dx_out) rules::demand(args.inputs[at++] == x, args, "dx_out of dh's type");
  rules::demand(args.inputs[at++] == x, args, "x of dh's type");
  rules::demand(args.inputs[at++] == stats_type(x), args, "stats [rows, 2]");
  std::vector<TensorType> outputs = {x};
  if (p.gate) {
    rules::demand(args.inputs[at++] == x, args, "o of dh's type");
    rules::token_table(args, at, count - 1);
    outputs.insert(outputs.end(), {x, args.inputs[at++]});
  }
  if (p.modulate) {
    rules::token_table(args, at, count - 1);
    outputs.insert(outputs.end(), 2, args.inputs[at]);
  } else {
    const TensorType weight{x.dtype, Shape{x.shape[2]}};
    rules::demand(args.inputs[at] == weight, args, "weight [D] of dh's dtype");
    outputs.insert(outputs.end(), 2, {rules::grad_dtype(x.dtype), weight.shape});
  }
  if (args.attrs.flag("bias_grad")) {
    outputs.push_back({rules::grad_dtype(x.dtype), Shape{x.shape[2]}});
  }
  return outputs;
}

std::vector<ValueId> decompose(Builder& b, std::span<const ValueId> inputs, const Attrs& attrs) {
  const auto [in, p] = take_forward(inputs, attrs);
  std::vector<ValueId> outputs;
  ValueId x = in.x;
  if (p.residual) {
    x = add(b, x, p.gate ? gate(b, in.o, in.gate, in.index) : in.o);
    outputs.push_back(x);
  }
  if (!p.norm) return outputs;
  const LayerNorm norm = layer_norm(b, x, attrs.real("eps"), in.weight, in.bias);
  const ValueId h = p.modulate ? modulate(b, norm.y, in.scale, in.shift, in.index) : norm.y;
  outputs.insert(outputs.end(), {h, norm.stats});
  return outputs;
}

std::vector<ValueId> decompose_grad(Builder& b, std::span<const ValueId> inputs,
                                    const Attrs& attrs) {
  const Parts p = parts_of(attrs);
  const Backward in = take_backward(inputs, attrs);
  std::vector<ValueId> norm_grads;
  LayerNormGrad inner;
  if (p.modulate) {
    const ValueId n = layer_norm(b, in.x, attrs.real("eps")).y;
    const ModulateGrad outer = modulate_grad(b, in.dh, n, in.scale, in.index);
    inner = layer_norm_grad(b, outer.x, in.x, in.stats);
    norm_grads = {outer.scale, outer.shift};
  } else {
    inner = layer_norm_grad(b, in.dh, in.x, in.stats, in.weight);
    norm_grads = {inner.weight, inner.bias};
  }
  std::vector<ValueId> outputs = {in.dx_out.valid() ? add(b, in.dx_out, inner.x) : inner.x};
  if (p.gate) {
    const GateGrad grad = gate_grad(b, outputs[0], in.o, in.gate, in.index);
    outputs.insert(outputs.end(), {grad.x, grad.g});
  }
  outputs.insert(outputs.end(), norm_grads.begin(), norm_grads.end());
  if (attrs.flag("bias_grad")) {
    const ValueId summed = cast(b, outputs[p.gate ? 1 : 0], rules::grad_dtype(b.dtype(in.dh)));
    outputs.push_back(sum_rows(b, summed, Shape{b.shape(summed)[2]}));
  }
  return outputs;
}

// Gradients in the order of the forward op's inputs.
struct Gradients {
  ValueId x, o, gate;
  std::vector<ValueId> norm;
};

// Nothing flows back through the norm.
Gradients residual_only(const BackwardArgs& args, const Forward& f, ValueId dx_out) {
  Gradients g{dx_out, dx_out, {}, std::vector<ValueId>(f.parts.norm ? 2 : 0)};
  if (f.parts.gate) {
    const GateGrad grad = gate_grad(args.builder, dx_out, f.in.o, f.in.gate, f.in.index);
    g.o = grad.x;
    g.gate = grad.g;
  }
  return g;
}

Gradients through_norm(const BackwardArgs& args, const Forward& f, ValueId dx_out, ValueId dh) {
  const size_t h = f.parts.residual ? 1 : 0;
  const ValueId x = f.parts.residual ? args.outputs[0] : f.in.x;
  const std::vector<ValueId> inputs =
      valid_only({dh, dx_out, x, args.outputs[h + 1], f.parts.gate ? f.in.o : ValueId{}, f.in.gate,
                  f.in.scale, f.in.weight, f.in.index});
  Attrs attrs = args.attrs;
  attrs.set("dx_out", dx_out.valid());
  const auto outputs = args.builder.emit(residual_norm_grad_op, inputs, attrs);
  Gradients g{outputs[0], outputs[0], {}, {outputs.end() - 2, outputs.end()}};
  if (f.parts.gate) {
    g.o = outputs[1];
    g.gate = outputs[2];
  }
  return g;
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const Forward f = take_forward(args.inputs, args.attrs);
  const size_t h = f.parts.residual ? 1 : 0;
  if (f.parts.norm) rules::no_output_gradient(args, h + 1, "residual_norm");
  const ValueId dx_out = f.parts.residual ? args.output_grads[0] : ValueId{};
  const ValueId dh = f.parts.norm ? args.output_grads[h] : ValueId{};
  const Gradients g =
      dh.valid() ? through_norm(args, f, dx_out, dh) : residual_only(args, f, dx_out);
  std::vector<ValueId> grads = {g.x};
  if (f.parts.residual) grads.push_back(g.o);
  if (f.parts.gate) grads.push_back(g.gate);
  grads.insert(grads.end(), g.norm.begin(), g.norm.end());
  if (f.parts.index()) grads.emplace_back();
  return grads;
}

// h and stats from x_out, where that is kept.
ValueId rematerialise(Builder& b, const RematerialiseArgs& args) {
  const auto [in, p] = take_forward(args.inputs, args.attrs);
  if (!p.residual || !p.norm || args.output == 0 || !args.outputs[0].valid()) return {};
  ResidualNormInputs again{.x = args.outputs[0]};
  for (ValueId ResidualNormInputs::*input :
       {&ResidualNormInputs::scale, &ResidualNormInputs::shift, &ResidualNormInputs::weight,
        &ResidualNormInputs::bias}) {
    if ((in.*input).valid()) again.*input = args.fetch(in.*input);
  }
  if (p.modulate) again.index = args.fetch(in.index);
  const ResidualNorm outputs = residual_norm(b, again, args.attrs.real("eps"));
  return args.output == 1 ? outputs.h : outputs.stats;
}

template <int kFlopsPerElement>
OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost{kFlopsPerElement * static_cast<double>(args.inputs[0].shape.num_elements()), 0};
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}

}  // namespace

const OpDef residual_norm_op = {.name = "residual_norm",
                                .infer = infer,
                                .backward = backward,
                                .decompose = decompose,
                                .cost = cost<12>,
                                .rematerialise = rematerialise,
                                .in_place = {{0, 0}},
                                .traits = kReduction};
const OpDef residual_norm_grad_op = {.name = "residual_norm_grad",
                                     .infer = infer_grad,
                                     .decompose = decompose_grad,
                                     .cost = cost<24>,
                                     .in_place = {{0, 0}, {0, 1}},
                                     .traits = kReduction};

ResidualNorm residual_norm(Builder& b, const ResidualNormInputs& in, double eps) {
  const bool modulate = in.scale.valid(), affine = in.weight.valid();
  const std::string residual = !in.o.valid() ? "none" : in.gate.valid() ? "gate" : "add";
  const std::string norm = modulate ? "modulate" : affine ? "affine" : "none";
  const Attrs attrs{{"eps", eps}, {"norm", norm}, {"residual", residual}};
  const bool needs_index = in.gate.valid() || modulate;
  const auto outputs = b.emit(residual_norm_op,
                              valid_only({in.x, in.o, in.gate, in.scale, in.shift, in.weight,
                                          in.bias, needs_index ? in.index : ValueId{}}),
                              attrs);
  if (needs_index) {
    const ValueId table = modulate ? in.scale : in.gate;
    rules::constant_index(b, in.index, b.shape(table)[1], false, "residual_norm");
  }
  ResidualNorm result{.x = in.x};
  if (in.o.valid()) result.x = outputs[0];
  if (modulate || affine) {
    result.h = outputs[outputs.size() - 2];
    result.stats = outputs.back();
  }
  return result;
}

}  // namespace wam
