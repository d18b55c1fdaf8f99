// A contiguous row-major tensor in host memory. Copies share the storage; clone() copies it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "wam/tensor/shape.h"

namespace wam {

class HostTensor {
 public:
  HostTensor() = default;
  // Allocates 64-byte aligned storage; the contents are undefined.
  explicit HostTensor(TensorType type);
  HostTensor(DType dtype, Shape shape) : HostTensor(TensorType{dtype, shape}) {}
  // Wraps memory kept alive by `owner` (a memory-mapped file, say).
  HostTensor(TensorType type, std::shared_ptr<std::byte> storage);
  static HostTensor zeros(DType dtype, Shape shape);

  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int64_t num_elements() const { return type_.shape.num_elements(); }
  int64_t size_bytes() const { return type_.size_bytes(); }
  bool empty() const { return storage_ == nullptr; }

  void* data() { return storage_.get(); }
  const void* data() const { return storage_.get(); }
  // Typed access; the element size must match (checked).
  template <typename T>
  std::span<T> as() {
    check_element_size(sizeof(T));
    return {reinterpret_cast<T*>(storage_.get()), static_cast<size_t>(num_elements())};
  }
  template <typename T>
  std::span<const T> as() const {
    check_element_size(sizeof(T));
    return {reinterpret_cast<const T*>(storage_.get()), static_cast<size_t>(num_elements())};
  }
  HostTensor clone() const;
  // Same storage, other sizes with the same number of elements.
  HostTensor reshaped(Shape shape) const;
  // Converted copy (floating <-> floating, integers widened or checked); the same tensor if equal.
  HostTensor to(DType dtype) const;

 private:
  void check_element_size(size_t bytes) const;
  TensorType type_;
  std::shared_ptr<std::byte> storage_;
};

}  // namespace wam
