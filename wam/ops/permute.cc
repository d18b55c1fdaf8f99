#include "wam/ops/permute.h"

#include "wam/ops/op_list.h"
#include "wam/ops/reshape.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// Whether `perm` holds each of 0..ndim-1 once.
bool is_permutation(std::span<const int64_t> perm, int ndim) {
  uint32_t seen = 0;
  for (const int64_t dim : perm) {
    if (dim < 0 || dim >= ndim) return false;
    seen |= 1u << dim;
  }
  return perm.size() == static_cast<size_t>(ndim) && seen + 1 == 1u << ndim;
}

Shape permuted(const Shape& shape, std::span<const int64_t> perm) {
  std::vector<int64_t> dims;
  for (const int64_t dim : perm) dims.push_back(shape[static_cast<int>(dim)]);
  return Shape(dims);
}

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  const TensorType& x = args.inputs[0];
  const std::vector<int64_t>& perm = args.attrs.integers("perm");
  rules::demand(is_permutation(perm, x.shape.ndim()), args,
                "attribute 'perm' a permutation of dims");
  return {{x.dtype, permuted(x.shape, perm)}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const std::vector<int64_t>& perm = args.attrs.integers("perm");
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return {permute(args.builder, args.output_grads[0], std::move(inverse))};
}

// Dims longer than one stay in their order.
bool keeps_element_order(const Shape& shape, std::span<const int64_t> perm) {
  int64_t last = -1;
  for (const int64_t dim : perm) {
    if (shape[static_cast<int>(dim)] == 1) continue;
    if (dim < last) return false;
    last = dim;
  }
  return true;
}

}  // namespace

const OpDef permute_op = {.name = "permute", .infer = infer, .backward = backward};

ValueId permute(Builder& b, ValueId x, std::vector<int64_t> perm) {
  const Shape& shape = b.shape(x);
  if (is_permutation(perm, shape.ndim()) && keeps_element_order(shape, perm)) {
    return reshape(b, x, permuted(shape, perm));
  }
  return b.emit1(permute_op, {x}, {{"perm", std::move(perm)}});
}

}  // namespace wam
