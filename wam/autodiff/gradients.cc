#include "wam/autodiff/gradients.h"

#include "wam/base/error.h"
#include "wam/ops/add.h"

namespace wam {
namespace {

class Backward {
 public:
  Backward(Builder& builder, std::span<const ValueId> wrt)
      : builder_(builder), wanted_(static_cast<size_t>(builder.graph().num_values()), false) {
    for (const ValueId id : wrt) wanted_[index(id)] = true;
    forward_ = {builder.graph().order().begin(), builder.graph().order().end()};
    mark_paths();
    grads_.resize(wanted_.size());
  }

  void run(ValueId loss, double seed) {
    grads_[index(loss)] = seed_constant(loss, seed);
    for (auto id = forward_.rbegin(); id != forward_.rend(); ++id) visit(*id);
  }

  ValueId grad(ValueId id) const { return grads_[index(id)]; }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id.index); }

  // wanted_[v]: some path leads from an element of wrt to v.
  void mark_paths() {
    for (const NodeId id : forward_) {
      const Node& node = builder_.graph().node(id);
      if (node.op->has(kNotDifferentiable)) continue;
      bool wanted = false;
      for (const ValueId input : node.inputs) wanted = wanted || wanted_[index(input)];
      for (const ValueId output : node.outputs) wanted_[index(output)] = wanted;
    }
  }

  ValueId seed_constant(ValueId loss, double seed) {
    const TensorType type = builder_.type(loss);
    if (type.shape.num_elements() != 1) {
      throw GraphError({.where = "gradients",
                        .what = "the loss is not a scalar",
                        .got = type.to_string(),
                        .expected = "one element"});
    }
    HostTensor wide(DType::kF64, type.shape);
    wide.as<double>()[0] = seed;
    return builder_.graph().add_constant(wide.to(type.dtype), "grad_seed");
  }

  void visit(NodeId id) {
    const Node node = builder_.graph().node(id);  // a copy: the node list grows meanwhile
    std::vector<ValueId> output_grads;
    bool any = false;
    for (const ValueId output : node.outputs) {
      output_grads.push_back(grads_[index(output)]);
      any = any || output_grads.back().valid();
    }
    if (!any || node.op->has(kNotDifferentiable)) return;
    std::vector<char> needs;
    bool needed = false;
    for (const ValueId input : node.inputs) {
      needs.push_back(wanted_[index(input)] ? 1 : 0);
      needed = needed || needs.back();
    }
    if (!needed) return;
    ScopeGuard scope(builder_, {.label = node.label, .block = node.block, .phase = Phase::kBackward});
    accumulate(node, differentiate(node, output_grads, needs));
  }

  std::vector<ValueId> differentiate(const Node& node, std::span<const ValueId> output_grads,
                                     std::span<const char> needs) {
    if (node.op->backward == nullptr) return differentiate_decomposition(node, output_grads);
    const std::unique_ptr<bool[]> flags(new bool[needs.size()]);
    for (size_t i = 0; i < needs.size(); ++i) flags[i] = needs[i] != 0;
    return node.op->backward({builder_, node.attrs, node.inputs, node.outputs, output_grads,
                              std::span<const bool>(flags.get(), needs.size())});
  }

  // Builds the plain form of the node beside it and differentiates that; dead-code removal drops
  // what the gradients do not read.
  std::vector<ValueId> differentiate_decomposition(const Node& node,
                                                   std::span<const ValueId> output_grads) {
    if (node.op->decompose == nullptr) {
      throw GraphError({.where = node.label,
                        .what = "op '" + std::string(node.op->name) + "' has no gradient",
                        .expected = "a backward rule, a decomposition, or no path to the loss"});
    }
    const size_t first = builder_.graph().order().size();
    const std::vector<ValueId> outputs = node.op->decompose(builder_, node.inputs, node.attrs);
    const std::vector<NodeId> plain(builder_.graph().order().begin() + static_cast<int64_t>(first),
                                    builder_.graph().order().end());
    grow();
    for (const NodeId id : plain) {
      const Node& inner = builder_.graph().node(id);
      bool wanted = false;
      for (const ValueId input : inner.inputs) wanted = wanted || wanted_[index(input)];
      for (const ValueId output : inner.outputs) {
        wanted_[index(output)] = wanted && !inner.op->has(kNotDifferentiable);
      }
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (output_grads[i].valid()) add_grad(outputs[i], output_grads[i]);
    }
    for (auto id = plain.rbegin(); id != plain.rend(); ++id) visit(*id);
    return {};  // visit() has added to the inputs' gradients already
  }

  void accumulate(const Node& node, const std::vector<ValueId>& grads) {
    grow();
    for (size_t i = 0; i < grads.size(); ++i) {
      if (grads[i].valid() && wanted_[index(node.inputs[i])]) add_grad(node.inputs[i], grads[i]);
    }
  }

  void add_grad(ValueId value, ValueId grad) {
    ValueId& sum = grads_[index(value)];
    sum = sum.valid() ? add(builder_, sum, grad) : grad;
    grow();
  }

  void grow() {
    wanted_.resize(static_cast<size_t>(builder_.graph().num_values()), false);
    grads_.resize(wanted_.size());
  }

  Builder& builder_;
  std::vector<char> wanted_;
  std::vector<ValueId> grads_;
  std::vector<NodeId> forward_;
};

}  // namespace

std::vector<ValueId> gradients(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
                               double seed) {
  Backward backward(builder, wrt);
  backward.run(loss, seed);
  std::vector<ValueId> grads;
  for (const ValueId id : wrt) grads.push_back(backward.grad(id));
  return grads;
}

}  // namespace wam
