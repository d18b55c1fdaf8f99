#include "wam/train/chart_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "wam/base/check.h"

namespace wam::train {
namespace {

// Label of a multiple of `step`: as many decimals as the step needs, thousands as k, M, G.
std::string linear_label(double value, double step, double largest) {
  struct Unit {
    double scale;
    const char* suffix;
  };
  constexpr std::array<Unit, 3> kUnits = {{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  if (largest >= 1e12 || largest < 1e-3) return value == 0 ? "0" : fmt::format("{:.4g}", value);
  double scale = 1;
  const char* suffix = "";
  for (const Unit& unit : kUnits) {
    if (largest < 10 * unit.scale) continue;
    scale = unit.scale;
    suffix = unit.suffix;
    break;
  }
  const double exponent = std::floor(std::log10(step / scale) + 1e-9);
  const int decimals = std::clamp(static_cast<int>(-exponent), 0, 9);
  if (value == 0) return "0";
  return fmt::format("{:.{}f}{}", value / scale, decimals, suffix);
}

std::string power_label(int digit, int exponent) {
  if (exponent >= -3 && exponent <= 3) return fmt::format("{:g}", digit * std::pow(10.0, exponent));
  return fmt::format("{}e{}", digit, exponent);
}

}  // namespace

ChartAxis::ChartAxis(double low, double high, bool is_log, double margin)
    : low_(low), high_(high), is_log_(is_log) {
  WAM_CHECK(std::isfinite(low) && std::isfinite(high) && low <= high && (!is_log || low > 0));
  if (is_log) {
    low_ = std::log10(low_);
    high_ = std::log10(high_);
  }
  // Half the length where both ends are the same or too near for a double to tell ticks apart.
  const double magnitude = std::max(std::fabs(low_), std::fabs(high_));
  if (high_ - low_ <= magnitude * 1e-12) {
    const double widening = is_log || magnitude == 0 ? 0.5 : magnitude * 0.1;
    low_ -= widening;
    high_ += widening;
  }
  // Halved first: the length itself may be past the largest double.
  const double half = high_ / 2 - low_ / 2;
  low_ = std::max(low_ - 2 * margin * half, std::numeric_limits<double>::lowest() / 4);
  high_ = std::min(high_ + 2 * margin * half, std::numeric_limits<double>::max() / 4);
}

bool ChartAxis::has_place(double value) const {
  return std::isfinite(value) && (!is_log_ || value > 0);
}

double ChartAxis::place(double value) const {
  return ((is_log_ ? std::log10(value) : value) - low_) / (high_ - low_);
}

std::vector<Tick> ChartAxis::ticks(int count) const {
  return is_log_ ? log_ticks(count) : linear_ticks(count);
}

std::vector<Tick> ChartAxis::linear_ticks(int count) const {
  const double rough = (high_ - low_) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power;
  for (double factor : {2.0, 5.0, 10.0}) {
    if (step < rough * 0.9) step = factor * power;
  }
  std::vector<Tick> ticks;
  const double largest = std::max(std::fabs(low_), std::fabs(high_));
  const double first = std::ceil(low_ / step - 1e-9);
  // At most 2 * count by the choice of the step; the bound keeps a rounding accident finite.
  for (int i = 0; i <= 3 * count && (first + i) * step <= high_ + step * 1e-9; ++i) {
    const double value = (first + i) * step;
    ticks.push_back({value, linear_label(value, step, largest)});
  }
  return ticks;
}

std::vector<Tick> ChartAxis::log_ticks(int count) const {
  const int first = static_cast<int>(std::floor(low_)), last = static_cast<int>(std::ceil(high_));
  const int stride = std::max(1, (last - first + count) / count);
  std::vector<int> digits = {1};
  if (high_ - low_ <= 3.2) digits = {1, 2, 5};
  if (high_ - low_ <= 0.7) digits = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<Tick> ticks;
  for (int exponent = first; exponent <= last; exponent += stride) {
    for (int digit : digits) {
      const double place = exponent + std::log10(digit);
      if (place < low_ - 1e-9 || place > high_ + 1e-9) continue;
      ticks.push_back({std::pow(10.0, place), power_label(digit, exponent)});
    }
  }
  return ticks;
}

}  // namespace wam::train
