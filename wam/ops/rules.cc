#include "wam/ops/rules.h"

#include <algorithm>

#include "wam/base/error.h"
#include "wam/graph/builder.h"

namespace wam::rules {

void fail(const OpArgs& args, std::string_view expected) {
  std::string got;
  for (const TensorType& type : args.inputs) got += (got.empty() ? "" : ", ") + type.to_string();
  throw GraphError({.what = "inputs break the op's rule",
                    .got = "(" + got + ") " + args.attrs.to_string(),
                    .expected = std::string(expected)});
}

void count(const OpArgs& args, size_t low, size_t high) {
  if (args.inputs.size() < low || args.inputs.size() > high) {
    fail(args, std::to_string(low) + " to " + std::to_string(high) + " inputs");
  }
}

void same_dtype(const OpArgs& args, size_t i) { dtype(args, i, args.inputs[0].dtype); }

void floating(const OpArgs& args, size_t i) {
  if (!is_floating(args.inputs[i].dtype))
    fail(args, "input " + std::to_string(i) + " floating point");
}

void dtype(const OpArgs& args, size_t i, DType dtype) {
  if (args.inputs[i].dtype != dtype) {
    fail(args, "input " + std::to_string(i) + " of type " + std::string(name(dtype)));
  }
}

void shape(const OpArgs& args, size_t i, const Shape& shape) {
  if (args.inputs[i].shape != shape) {
    fail(args, "input " + std::to_string(i) + " of shape " + shape.to_string());
  }
}

void ndim(const OpArgs& args, size_t i, int ndim) {
  if (args.inputs[i].shape.ndim() != ndim) {
    fail(args, "input " + std::to_string(i) + " with " + std::to_string(ndim) + " dims");
  }
}

bool is_suffix(const Shape& suffix, const Shape& shape) {
  if (suffix.ndim() > shape.ndim()) return false;
  for (int i = 1; i <= suffix.ndim(); ++i) {
    if (suffix[-i] != shape[-i]) return false;
  }
  return true;
}

Shape with_last(const Shape& shape, int64_t last) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.back() = last;
  return Shape(dims);
}

int dim(const OpArgs& args) {
  const int64_t dim = args.attrs.integer("dim");
  demand(dim >= 0 && dim < args.inputs[0].shape.ndim(), args, "attribute 'dim' a dim of input 0");
  return static_cast<int>(dim);
}

void stat(const OpArgs& args, size_t i) { dtype(args, i, grad_dtype(args.inputs[0].dtype)); }

void token_table(const OpArgs& args, size_t table, size_t index) {
  ndim(args, 0, 3);
  ndim(args, table, 3);
  stat(args, table);
  const Shape& x = args.inputs[0].shape;
  shape(args, table, Shape{x[0], args.inputs[table].shape[1], x[2]});
  dtype(args, index, DType::kI32);
  shape(args, index, Shape{x[1]});
}

Shape with_dim(const Shape& shape, int dim, int64_t size) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[static_cast<size_t>(dim)] = size;
  return Shape(dims);
}

int normalized_dim(const Shape& shape, int dim) {
  const int result = dim < 0 ? dim + shape.ndim() : dim;
  if (result < 0 || result >= shape.ndim()) {
    throw GraphError({.what = "no such dim",
                      .got = std::to_string(dim),
                      .expected = "a dim of " + shape.to_string()});
  }
  return result;
}

void constant_index(const Builder& b, ValueId index, int64_t bound, bool unique,
                    std::string_view op) {
  const Value& value = b.graph().value(index);
  if (value.kind != ValueKind::kConstant || value.type.dtype != DType::kI32) return;
  std::vector<char> seen(static_cast<size_t>(std::max<int64_t>(bound, 0)), 0);
  for (const int32_t i : value.constant.as<int32_t>()) {
    if (i < 0 || i >= bound || (unique && seen[static_cast<size_t>(i)])) {
      throw GraphError({.where = std::string(op),
                        .what = "bad entry in the index '" + value.name + "'",
                        .got = std::to_string(i),
                        .expected = std::string(unique ? "distinct rows" : "rows") + " below " +
                                    std::to_string(bound)});
    }
    seen[static_cast<size_t>(i)] = 1;
  }
}

void no_gradient(const BackwardArgs& args, size_t i, std::string_view op) {
  if (!args.needs_grad[i]) return;
  throw GraphError({.where = std::string(op),
                    .what = "no gradient is defined for input " + std::to_string(i),
                    .expected = "an input that no trained weight leads to"});
}

void no_output_gradient(const BackwardArgs& args, size_t i, std::string_view op) {
  if (!args.output_grads[i].valid()) return;
  throw GraphError({.where = std::string(op),
                    .what = "output " + std::to_string(i) + " carries no gradient",
                    .expected = "a loss that does not depend on it"});
}

DType grad_dtype(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

void collective(const OpArgs& args) {
  const std::string axis = args.attrs.text("axis");
  demand(axis == "world" || axis == "shard" || axis == "replica", args,
         "attribute 'axis' world, shard or replica");
  demand(args.attrs.integer("ranks") >= 1, args, "attribute 'ranks' of at least 1");
}

void wire(const OpArgs& args) {
  const std::string wire = args.attrs.text("wire");
  demand(wire == "f32" || (wire == "bf16" && args.inputs[0].dtype != DType::kF64), args,
         "attribute 'wire' f32, or bf16 for data of no more than f32");
}

double wire_bytes(const OpArgs& args) {
  const bool narrow = args.attrs.text("wire") == "bf16";
  return narrow ? 2.0 : static_cast<double>(size_bytes(args.inputs[0].dtype));
}

}  // namespace wam::rules
