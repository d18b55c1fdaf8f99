#include "wam/tensor/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "wam/base/check.h"

namespace wam {
namespace {

struct DTypeInfo {
  std::string_view name;
  int64_t bytes;
  bool floating;
};

constexpr std::array<DTypeInfo, 10> kInfo = {{{"f32", 4, true},
                                              {"bf16", 2, true},
                                              {"f16", 2, true},
                                              {"f64", 8, true},
                                              {"i32", 4, false},
                                              {"i64", 8, false},
                                              {"u8", 1, false},
                                              {"bool", 1, false},
                                              {"i8", 1, false},
                                              {"i16", 2, false}}};

const DTypeInfo& info(DType dtype) {
  WAM_CHECK(static_cast<size_t>(dtype) < kInfo.size());
  return kInfo[static_cast<size_t>(dtype)];
}

}  // namespace

int64_t size_bytes(DType dtype) { return info(dtype).bytes; }
std::string_view name(DType dtype) { return info(dtype).name; }
bool is_floating(DType dtype) { return info(dtype).floating; }

DType parse_dtype(std::string_view text) {
  for (size_t i = 0; i < kInfo.size(); ++i) {
    if (kInfo[i].name == text) return static_cast<DType>(i);
  }
  throw ConfigError({.where = "dtype",
                     .what = "unknown element type",
                     .got = "'" + std::string(text) + "'",
                     .expected = "one of f32, bf16, f16, f64, i64, i32, i16, i8, u8, bool",
                     .remedy = "Choose one of these."});
}

float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

float f16_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} >> 15 << 31;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | mantissa << 13);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                        : std::ldexp(static_cast<float>(mantissa | 0x400u),
                                                     static_cast<int>(exponent) - 25);
  return sign ? -magnitude : magnitude;
}

uint16_t float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7E00u);
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return static_cast<uint16_t>(sign | 0x7C00u);
  if (magnitude < 0x1p-14f) {
    return static_cast<uint16_t>(sign |
                                 static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, 24))));
  }
  const uint32_t rounded = (bits & 0x7FFFFFFFu) + 0xFFFu + ((bits >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace wam
