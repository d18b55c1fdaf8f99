#include "wam/train/pixel_readout.h"

#include <algorithm>
#include <cmath>

#include "wam/base/check.h"

namespace wam::train {
namespace {

constexpr double kRidge = 1e-2;  // of the mean diagonal

// Solves A X = B for symmetric positive A [n, n], B [n, m], in place of B, by Cholesky.
void solve(std::vector<double>& a, std::vector<double>& b, int64_t n, int64_t m) {
  const auto at = [n](int64_t i, int64_t j) { return static_cast<size_t>(i * n + j); };
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t k = 0; k < j; ++k) {
      for (int64_t i = j; i < n; ++i) a[at(i, j)] -= a[at(i, k)] * a[at(j, k)];
    }
    WAM_CHECK(a[at(j, j)] > 0) << "matrix is not positive";
    const double root = std::sqrt(a[at(j, j)]);
    for (int64_t i = j; i < n; ++i) a[at(i, j)] /= root;
  }
  const auto row = [&](int64_t i) { return b.data() + i * m; };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < i; ++k) {
      for (int64_t c = 0; c < m; ++c) row(i)[c] -= a[at(i, k)] * row(k)[c];
    }
    for (int64_t c = 0; c < m; ++c) row(i)[c] /= a[at(i, i)];
  }
  for (int64_t i = n; i-- > 0;) {
    for (int64_t k = i + 1; k < n; ++k) {
      for (int64_t c = 0; c < m; ++c) row(i)[c] -= a[at(k, i)] * row(k)[c];
    }
    for (int64_t c = 0; c < m; ++c) row(i)[c] /= a[at(i, i)];
  }
}

}  // namespace

PixelReadout::PixelReadout(int64_t channels, int64_t stride)
    : channels_(channels),
      stride_(stride),
      inputs_(9 * channels + 1),
      outputs_(stride * stride * 3),
      gram_(static_cast<size_t>(inputs_ * inputs_)),
      cross_(static_cast<size_t>(inputs_ * outputs_)) {}

void PixelReadout::features(const HostTensor& latents, int64_t frame, int64_t row, int64_t column,
                            std::vector<double>& out) const {
  const int64_t h = latents.shape()[1], w = latents.shape()[2];
  out.assign(static_cast<size_t>(inputs_), 0.0);
  out.back() = 1;
  size_t at = 0;
  for (int64_t dr = -1; dr <= 1; ++dr) {
    for (int64_t dc = -1; dc <= 1; ++dc, at += static_cast<size_t>(channels_)) {
      const int64_t r = row + dr, c = column + dc;
      if (r < 0 || r >= h || c < 0 || c >= w) continue;
      const float* z = latents.as<float>().data() + ((frame * h + r) * w + c) * channels_;
      std::copy_n(z, channels_, out.begin() + static_cast<int64_t>(at));
    }
  }
}

void PixelReadout::add(const HostTensor& latents, const HostTensor& frames) {
  const int64_t count = latents.shape()[0], h = latents.shape()[1], w = latents.shape()[2];
  const int64_t width = w * stride_;
  std::vector<double> x, y(static_cast<size_t>(outputs_));
  for (int64_t f = 0; f < count; ++f) {
    const uint8_t* picture = frames.as<uint8_t>().data() + 4 * f * h * stride_ * width * 3;
    for (int64_t r = 0; r < h; ++r) {
      for (int64_t c = 0; c < w; ++c) {
        features(latents, f, r, c, x);
        size_t at = 0;
        for (int64_t pr = 0; pr < stride_; ++pr) {
          const uint8_t* line = picture + ((r * stride_ + pr) * width + c * stride_) * 3;
          for (int64_t i = 0; i < stride_ * 3; ++i) y[at++] = line[i];
        }
        for (int64_t i = 0; i < inputs_; ++i) {
          const double v = x[static_cast<size_t>(i)];
          if (v == 0) continue;
          for (int64_t j = 0; j < inputs_; ++j) gram_[static_cast<size_t>(i * inputs_ + j)] += v * x[static_cast<size_t>(j)];
          for (int64_t j = 0; j < outputs_; ++j) cross_[static_cast<size_t>(i * outputs_ + j)] += v * y[static_cast<size_t>(j)];
        }
      }
    }
  }
}

void PixelReadout::fit() {
  double diagonal = 0;
  for (int64_t i = 0; i < inputs_; ++i) diagonal += gram_[static_cast<size_t>(i * inputs_ + i)];
  for (int64_t i = 0; i < inputs_; ++i) {
    gram_[static_cast<size_t>(i * inputs_ + i)] += kRidge * diagonal / static_cast<double>(inputs_);
  }
  weights_ = cross_;
  solve(gram_, weights_, inputs_, outputs_);
}

HostTensor PixelReadout::decode(const HostTensor& latents) const {
  const int64_t count = latents.shape()[0], h = latents.shape()[1], w = latents.shape()[2];
  HostTensor out(DType::kU8, Shape{count, h * stride_, w * stride_, 3});
  std::vector<double> x, y(static_cast<size_t>(outputs_));
  for (int64_t f = 0; f < count; ++f) {
    for (int64_t r = 0; r < h; ++r) {
      for (int64_t c = 0; c < w; ++c) {
        features(latents, f, r, c, x);
        std::ranges::fill(y, 0.0);
        for (int64_t i = 0; i < inputs_; ++i) {
          for (int64_t j = 0; j < outputs_; ++j) {
            y[static_cast<size_t>(j)] += x[static_cast<size_t>(i)] * weights_[static_cast<size_t>(i * outputs_ + j)];
          }
        }
        size_t at = 0;
        for (int64_t pr = 0; pr < stride_; ++pr) {
          uint8_t* line = out.as<uint8_t>().data() +
                          (((f * h + r) * stride_ + pr) * w * stride_ + c * stride_) * 3;
          for (int64_t i = 0; i < stride_ * 3; ++i) {
            line[i] = static_cast<uint8_t>(std::clamp(std::lround(y[at++]), 0L, 255L));
          }
        }
      }
    }
  }
  return out;
}

}  // namespace wam::train
