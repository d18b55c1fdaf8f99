#include "wam/tensor/host_tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "wam/base/check.h"

namespace wam {
namespace {

constexpr size_t kAlignment = 64;

std::shared_ptr<std::byte> allocate(int64_t bytes) {
  const size_t rounded = (static_cast<size_t>(bytes) + kAlignment) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

double load(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kF32: return static_cast<const float*>(data)[i];
    case DType::kF64: return static_cast<const double*>(data)[i];
    case DType::kBF16: return bf16_to_float(static_cast<const uint16_t*>(data)[i]);
    case DType::kF16: return f16_to_float(static_cast<const uint16_t*>(data)[i]);
    case DType::kI32: return static_cast<const int32_t*>(data)[i];
    case DType::kI64: return static_cast<double>(static_cast<const int64_t*>(data)[i]);
    case DType::kI16: return static_cast<const int16_t*>(data)[i];
    case DType::kI8: return static_cast<const int8_t*>(data)[i];
    case DType::kU8:
    case DType::kBool: return static_cast<const uint8_t*>(data)[i];
  }
  return 0;
}

void store(void* data, DType dtype, int64_t i, double value) {
  switch (dtype) {
    case DType::kF32: static_cast<float*>(data)[i] = static_cast<float>(value); return;
    case DType::kF64: static_cast<double*>(data)[i] = value; return;
    case DType::kBF16: static_cast<uint16_t*>(data)[i] = float_to_bf16(static_cast<float>(value)); return;
    case DType::kF16: static_cast<uint16_t*>(data)[i] = float_to_f16(static_cast<float>(value)); return;
    case DType::kI32: static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value); return;
    case DType::kI64: static_cast<int64_t*>(data)[i] = static_cast<int64_t>(value); return;
    case DType::kI16: static_cast<int16_t*>(data)[i] = static_cast<int16_t>(value); return;
    case DType::kI8: static_cast<int8_t*>(data)[i] = static_cast<int8_t>(value); return;
    case DType::kU8:
    case DType::kBool: static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value); return;
  }
}

template <typename From, typename To, typename F>
void convert_each(const void* from, void* to, int64_t count, const F& convert) {
  const From* in = static_cast<const From*>(from);
  To* out = static_cast<To*>(to);
#pragma omp parallel for simd schedule(static) if (count > 1 << 16)
  for (int64_t i = 0; i < count; ++i) out[i] = convert(in[i]);
}

// The conversions that whole checkpoints go through; false if it is another one.
bool convert_floats(const void* from, DType from_type, void* to, DType to_type, int64_t count) {
  if (from_type == DType::kBF16 && to_type == DType::kF32) {
    convert_each<uint16_t, float>(from, to, count, bf16_to_float);
  } else if (from_type == DType::kF16 && to_type == DType::kF32) {
    convert_each<uint16_t, float>(from, to, count, f16_to_float);
  } else if (from_type == DType::kF32 && to_type == DType::kBF16) {
    convert_each<float, uint16_t>(from, to, count, float_to_bf16);
  } else {
    return false;
  }
  return true;
}

}  // namespace

HostTensor::HostTensor(TensorType type) : type_(type), storage_(allocate(type.size_bytes())) {}

HostTensor::HostTensor(TensorType type, std::shared_ptr<std::byte> storage)
    : type_(type), storage_(std::move(storage)) {}

HostTensor HostTensor::zeros(DType dtype, Shape shape) {
  HostTensor result(dtype, shape);
  std::memset(result.data(), 0, static_cast<size_t>(result.size_bytes()));
  return result;
}

HostTensor HostTensor::clone() const {
  HostTensor result(type_);
  std::memcpy(result.data(), data(), static_cast<size_t>(size_bytes()));
  return result;
}

HostTensor HostTensor::reshaped(Shape shape) const {
  WAM_CHECK(shape.num_elements() == num_elements()) << shape.to_string() << " from " << type_.to_string();
  return {TensorType{type_.dtype, shape}, storage_};
}

HostTensor HostTensor::to(DType dtype) const {
  if (dtype == type_.dtype) return *this;
  HostTensor result(dtype, type_.shape);
  if (convert_floats(data(), type_.dtype, result.data(), dtype, num_elements())) return result;
  for (int64_t i = 0; i < num_elements(); ++i) store(result.data(), dtype, i, load(data(), type_.dtype, i));
  return result;
}

void HostTensor::check_element_size(size_t bytes) const {
  WAM_CHECK(storage_ != nullptr && static_cast<int64_t>(bytes) == wam::size_bytes(type_.dtype))
      << "element of " << bytes << " bytes asked from " << type_.to_string();
}

}  // namespace wam
