// What an op is. Every op has one OpDef, a constant of static lifetime in ops/<name>.cc, listed in
// ops/op_list.inc. Kernels are found by the same name (kernels/kernel.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "wam/base/attrs.h"
#include "wam/graph/ids.h"
#include "wam/tensor/shape.h"

namespace wam {

class Builder;  // graph/builder.h

// The types an op is applied to.
struct OpArgs {
  std::span<const TensorType> inputs;
  const Attrs& attrs;
};

// Work of one application: floating-point operations (multiply-add = 2) and the fewest bytes moved.
struct OpCost {
  double flops = 0;
  double bytes = 0;
};

// What backward() gets to see, and the builder it appends to.
struct BackwardArgs {
  Builder& builder;
  const Attrs& attrs;
  std::span<const ValueId> inputs;
  std::span<const ValueId> outputs;
  std::span<const ValueId> output_grads;  // invalid where nothing flows back
  std::span<const bool> needs_grad;       // for each input
};

struct RematerialiseArgs {
  const Attrs& attrs;
  std::span<const ValueId> inputs;   // as in the forward graph; read them through fetch()
  std::span<const ValueId> outputs;  // as in the forward graph; invalid where not kept
  int output;                        // the one wanted
  // The input as it is available in the backward half: itself if kept, else computed again.
  const std::function<ValueId(ValueId)>& fetch;
};

// Output `output` may live in the memory of input `input` when nobody reads that input later.
struct InPlace {
  int output, input;
};

enum OpTrait : uint32_t {
  kElementwise = 1u << 0,   // output i depends on element i of every same-shaped input alone
  kReduction = 1u << 1,
  kMatrix = 1u << 2,        // dominated by matrix products: never recomputed lightly
  kView = 1u << 3,          // output 0 is the bytes of input 0 from view_offset() on; no kernel runs
  kNotDifferentiable = 1u << 4,  // outputs carry no gradient (masks, embeddings of timesteps)
  kCollective = 1u << 5,    // communicates; never duplicated, never reordered among its kind
  kSideEffect = 1u << 6,    // never removed
  kPack = 1u << 7,          // input i is the bytes of output 0 from element offsets[i] on: it may be
                            // written there at once, and the kernel then finds it in its place
};

struct OpDef {
  std::string_view name;
  // Checks the inputs and gives the outputs' types. Throws GraphError.
  std::vector<TensorType> (*infer)(const OpArgs&);
  // Gradients of the inputs (invalid where not asked for). Null: decompose() is differentiated, or,
  // with kNotDifferentiable, there is none.
  std::vector<ValueId> (*backward)(const BackwardArgs&) = nullptr;
  // The same outputs in plainer ops. Null for plain ops.
  std::vector<ValueId> (*decompose)(Builder&, std::span<const ValueId> inputs,
                                    const Attrs&) = nullptr;
  // Null: one operation an output element, each input read and each output written once.
  OpCost (*cost)(const OpArgs&, std::span<const TensorType> outputs) = nullptr;
  // A cheap expression for one output from other outputs of the same application, used by the
  // recompute pass (linear_gelu: h = gelu(pre); residual_norm: h = norm(x_out)). Null or invalid:
  // there is none with what is kept.
  ValueId (*rematerialise)(Builder&, const RematerialiseArgs&) = nullptr;
  int64_t (*view_offset)(const OpArgs&) = nullptr;  // with kView; bytes
  std::vector<InPlace> in_place = {};
  uint32_t traits = 0;

  bool has(OpTrait trait) const { return (traits & trait) != 0; }
};

OpCost cost_of(const OpDef& op, const OpArgs& args, std::span<const TensorType> outputs);

}  // namespace wam
