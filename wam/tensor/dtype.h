// Element types of tensors.
#pragma once

#include <cstdint>
#include <string_view>

namespace wam {

enum class DType : uint8_t { kF32, kBF16, kF16, kF64, kI32, kI64, kU8, kBool, kI8, kI16 };

int64_t size_bytes(DType dtype);
// "f32", "bf16", ...: the names used in graph text, plans and messages.
std::string_view name(DType dtype);
// Inverse of name(); throws ConfigError naming the value.
DType parse_dtype(std::string_view text);
bool is_floating(DType dtype);

// Conversions by bits; float -> bf16 rounds to nearest even and keeps NaN a NaN.
float bf16_to_float(uint16_t bits);
uint16_t float_to_bf16(float value);
float f16_to_float(uint16_t bits);
uint16_t float_to_f16(float value);

}  // namespace wam
