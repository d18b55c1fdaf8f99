#include "wam/models/unipc.h"

#include <algorithm>
#include <cmath>

#include "wam/base/check.h"

namespace wam {
namespace {

constexpr double kShift = 5.0;

// Signal rate, noise rate and half log signal-to-noise ratio of a flow-matching time.
struct Rate {
  explicit Rate(double s) : alpha(1 - s), sigma(s), lambda(std::log(1 - s) - std::log(s)) {}
  double alpha, sigma, lambda;
};

double shifted_sigma(int steps, int index) {
  if (index == steps) return 0;
  const double s = 0.999 * (1.0 - static_cast<double>(index) / steps);
  return kShift * s / (1 + (kShift - 1) * s);
}

// x = keep * from + sum_i weight_i * prediction_i over the newest predictions.
struct Update {
  double keep = 0;
  double newest = 0, previous = 0;
  double corrected = 0;  // weight of the prediction at the new time (corrector only)
};

// Terms of bh2: from time s to t, with r = (lambda of the older prediction - lambda_s) / h.
struct Terms {
  Terms(const Rate& s, const Rate& t)
      : h(t.lambda - s.lambda), phi1(std::expm1(-h)), keep(t.sigma / s.sigma), alpha(t.alpha) {}
  double h, phi1, keep, alpha;
};

Update predictor(const Rate& s, const Rate& t, int order, double r) {
  const Terms z(s, t);
  Update u{.keep = z.keep, .newest = -z.alpha * z.phi1};
  if (order == 2) {
    const double slope = -z.alpha * z.phi1 * 0.5 / r;  // of (previous - newest)
    u.previous = slope;
    u.newest -= slope;
  }
  return u;
}

Update corrector(const Rate& s, const Rate& t, int order, double r) {
  const Terms z(s, t);
  Update u{.keep = z.keep, .newest = -z.alpha * z.phi1};
  double at_new = 0.5, at_old = 0;
  if (order == 2) {
    // [1 1; r 1] (old, new) = (b1, b2) with the phi functions of -h.
    const double phi2 = z.phi1 / -z.h - 1, phi3 = phi2 / -z.h - 0.5;
    const double b1 = phi2 / z.phi1, b2 = 2 * phi3 / z.phi1;
    at_old = (b1 - b2) / (1 - r);
    at_new = b1 - at_old;
  }
  u.corrected = -z.alpha * z.phi1 * at_new;
  u.newest -= u.corrected;
  if (order == 2) {
    u.previous = -z.alpha * z.phi1 * at_old / r;
    u.newest -= u.previous;
  }
  return u;
}

}  // namespace

UnipcSchedule unipc_schedule(int steps) {
  WAM_CHECK(steps >= 1) << steps;
  UnipcSchedule schedule;
  for (int i = 0; i <= steps; ++i) {
    const double sigma = shifted_sigma(steps, i);
    schedule.sigmas.push_back(static_cast<float>(sigma));
    if (i < steps) schedule.timesteps.push_back(static_cast<int64_t>(std::floor(1000 * sigma)));
  }
  return schedule;
}

UnipcSampler::UnipcSampler(int steps) : schedule_(unipc_schedule(steps)) {}

void UnipcSampler::step(int index, std::span<const float> velocity, std::vector<float>& sample) {
  WAM_CHECK(index >= 0 && index < num_steps() && velocity.size() == sample.size());
  const int steps = num_steps();
  const auto rate = [&](int i) { return Rate(shifted_sigma(steps, i)); };
  const auto ratio = [&](int s, int t) {
    return (rate(s - 1).lambda - rate(s).lambda) / (rate(t).lambda - rate(s).lambda);
  };
  std::vector<float> data(sample.size());
  const double sigma = rate(index).sigma;
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<float>(sample[i] - sigma * velocity[i]);
  }
  if (index > 0) {
    const double r = last_order_ == 2 ? ratio(index - 1, index) : 0;
    const Update u = corrector(rate(index - 1), rate(index), last_order_, r);
    const std::vector<float>& newest = predictions_.back();
    const std::vector<float>& previous = predictions_.front();
    for (size_t i = 0; i < sample.size(); ++i) {
      sample[i] = static_cast<float>(u.keep * last_sample_[i] + u.newest * newest[i] +
                                     u.previous * previous[i] + u.corrected * data[i]);
    }
  }
  predictions_.push_back(std::move(data));
  if (predictions_.size() > 2) predictions_.erase(predictions_.begin());
  last_order_ = std::min({2, steps - index, index + 1});
  last_sample_ = sample;
  const double r = last_order_ == 2 ? ratio(index, index + 1) : 0;
  const Update u = predictor(rate(index), rate(index + 1), last_order_, r);
  for (size_t i = 0; i < sample.size(); ++i) {
    sample[i] = static_cast<float>(u.keep * last_sample_[i] + u.newest * predictions_.back()[i] +
                                   u.previous * predictions_.front()[i]);
  }
}

}  // namespace wam
