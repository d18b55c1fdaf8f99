#include "wam/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace wam::train {

double learning_rate(const LearningRate& s, int64_t step) {
  if (step < s.warmup_steps) return s.lr * static_cast<double>(step) / static_cast<double>(s.warmup_steps);
  const double span = static_cast<double>(std::max<int64_t>(1, s.total_steps - s.warmup_steps));
  const double progress = std::min(1.0, static_cast<double>(step - s.warmup_steps) / span);
  const double fraction = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return s.min_lr + (s.lr - s.min_lr) * fraction;
}

HostTensor adamw_schedule(double lr, double weight_decay, const AdamwOptions& options, int64_t t) {
  HostTensor values = HostTensor::zeros(DType::kF32, Shape{kAdamwNumScalars});
  const auto v = values.as<float>();
  v[kAdamwLr] = static_cast<float>(lr);
  v[kAdamwBiasCorrection1] = static_cast<float>(1.0 - std::pow(options.beta1, static_cast<double>(t)));
  v[kAdamwBiasCorrection2] = static_cast<float>(1.0 - std::pow(options.beta2, static_cast<double>(t)));
  v[kAdamwClipFactor] = 1;
  v[kAdamwWeightDecay] = static_cast<float>(weight_decay);
  return values;
}

}  // namespace wam::train
