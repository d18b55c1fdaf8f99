#include "wam/data/normalize.h"

#include <algorithm>

namespace wam::data {
namespace {

float clamp1(float x) { return std::clamp(x, -1.0f, 1.0f); }

float to_unit(const DimNorm& n, float x) { return 2.0f * ((x - n.a) / (n.b - n.a)) - 1.0f; }

}  // namespace

float normalize(const DimNorm& n, float x) {
  switch (n.mode) {
    case NormMode::kQ99:
      return clamp1(n.a == n.b ? x : to_unit(n, x));
    case NormMode::kMinMax:
      return n.a == n.b ? 0.0f : clamp1(to_unit(n, x));
    case NormMode::kMeanStd:
      return n.b == 0.0f ? x : (x - n.a) / n.b;
    case NormMode::kBinary:
      return x > 0.5f ? 1.0f : 0.0f;
    case NormMode::kNone:
      return x;
  }
  return x;
}

float denormalize(const DimNorm& n, float x) {
  switch (n.mode) {
    case NormMode::kQ99:
    case NormMode::kMinMax:
      return (x + 1.0f) / 2.0f * (n.b - n.a) + n.a;
    case NormMode::kMeanStd:
      return x * n.b + n.a;
    case NormMode::kBinary:
      return x > 0.5f ? 1.0f : 0.0f;
    case NormMode::kNone:
      return x;
  }
  return x;
}

std::vector<std::string> needed_statistics(NormMode mode) {
  switch (mode) {
    case NormMode::kQ99:
      return {"q01", "q99"};
    case NormMode::kMinMax:
      return {"min", "max"};
    case NormMode::kMeanStd:
      return {"mean", "std"};
    case NormMode::kBinary:
    case NormMode::kNone:
      return {};
  }
  return {};
}

}  // namespace wam::data
