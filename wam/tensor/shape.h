// Sizes of a contiguous, row-major tensor of up to eight dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "wam/tensor/dtype.h"

namespace wam {

class Shape {
 public:
  static constexpr int kMaxDims = 8;
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  // Throws GraphError on a negative size, more than kMaxDims, or 2^63 elements and more.
  explicit Shape(std::span<const int64_t> dims);

  int ndim() const { return ndim_; }
  // Negative positions count from the end, as in shape[-1].
  int64_t operator[](int dim) const { return dims_[dim < 0 ? dim + ndim_ : dim]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(ndim_)}; }
  int64_t num_elements() const;
  // Product of all dims but the last; 1 for a scalar.
  int64_t num_rows() const;
  // The last dim; 1 for a scalar.
  int64_t row_size() const { return ndim_ == 0 ? 1 : dims_[ndim_ - 1]; }
  std::string to_string() const;  // "[2,3]"
  bool operator==(const Shape& other) const;

 private:
  std::array<int64_t, kMaxDims> dims_{};
  int ndim_ = 0;
};

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  int64_t size_bytes() const { return shape.num_elements() * wam::size_bytes(dtype); }
  std::string to_string() const;  // "f32[2,3]"
  bool operator==(const TensorType&) const = default;
};

}  // namespace wam
