#include "wam/models/stand_ins.h"

#include <algorithm>
#include <cmath>

#include "wam/base/check.h"

namespace wam {

VaeConfig stand_in_vae(int64_t dim, int64_t z_dim) {
  return {.kind = VaeKind::kWan22, .dim = dim, .dec_dim = dim, .z_dim = z_dim};
}

Umt5Config stand_in_umt5(int64_t vocab, int64_t dim) {
  return {.vocab = vocab, .dim = dim, .dim_attn = dim, .dim_ffn = 2 * dim, .heads = 4, .layers = 2};
}

ClipConfig stand_in_clip(int64_t dim) {
  return {.image_size = 56, .patch_size = 14, .dim = dim, .heads = 4, .layers = 3};
}

void LatentStatistics::add(const HostTensor& latents) {
  const int64_t channels = latents.shape().row_size();
  if (mean_.empty()) {
    mean_.assign(static_cast<size_t>(channels), 0);
    square_ = mean_;
  }
  WAM_CHECK(static_cast<int64_t>(mean_.size()) == channels)
      << latents.shape().to_string() << " after " << mean_.size() << " channels";
  const std::span<const float> values = latents.as<float>();
  for (size_t row = 0; row < values.size(); row += mean_.size()) {
    ++count_;
    for (size_t c = 0; c < mean_.size(); ++c) {
      const double x = values[row + c], before = x - mean_[c];
      mean_[c] += before / static_cast<double>(count_);
      square_[c] += before * (x - mean_[c]);
    }
  }
}

std::vector<double> LatentStatistics::mean() const {
  WAM_CHECK(count_ > 0);
  return mean_;
}

std::vector<double> LatentStatistics::std() const {
  WAM_CHECK(count_ > 0);
  std::vector<double> result;
  for (const double square : square_) {
    result.push_back(std::max(kSmallestStd, std::sqrt(square / static_cast<double>(count_))));
  }
  return result;
}

}  // namespace wam
