#include "wam/tensor/shape.h"

#include <algorithm>

#include "wam/base/error.h"

namespace wam {

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > kMaxDims) {
    throw GraphError({.where = "shape",
                      .what = "too many dimensions",
                      .got = std::to_string(dims.size()),
                      .expected = "at most " + std::to_string(kMaxDims)});
  }
  int64_t total = 1;
  for (const int64_t size : dims) {
    if (size < 0 || __builtin_mul_overflow(total, std::max<int64_t>(size, 1), &total)) {
      throw GraphError({.where = "shape",
                        .what = "a size is negative or the product overflows",
                        .got = std::to_string(size),
                        .expected = "sizes >= 0 with a product below 2^63"});
    }
    dims_[ndim_++] = size;
  }
}

int64_t Shape::num_elements() const {
  int64_t total = 1;
  for (int i = 0; i < ndim_; ++i) total *= dims_[i];
  return total;
}

int64_t Shape::num_rows() const {
  int64_t total = 1;
  for (int i = 0; i + 1 < ndim_; ++i) total *= dims_[i];
  return total;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < ndim_; ++i) text += (i ? "," : "") + std::to_string(dims_[i]);
  return text + "]";
}

bool Shape::operator==(const Shape& other) const { return std::ranges::equal(dims(), other.dims()); }

std::string TensorType::to_string() const { return std::string(name(dtype)) + shape.to_string(); }

}  // namespace wam
