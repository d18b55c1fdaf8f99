#include "wam/ops/rules.h"

#include "wam/base/error.h"

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
  if (!is_floating(args.inputs[i].dtype)) fail(args, "input " + std::to_string(i) + " floating point");
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

DType grad_dtype(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

}  // namespace wam::rules
