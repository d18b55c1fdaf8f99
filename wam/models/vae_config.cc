#include "wam/models/vae_config.h"

#include <string>

#include "wam/base/error.h"
#include "wam/models/vae_normalisation.h"

namespace wam {
namespace {

[[noreturn]] void fail(std::string what, std::string got, std::string expected) {
  throw ConfigError({.where = "vae",
                     .what = std::move(what),
                     .got = std::move(got),
                     .expected = std::move(expected),
                     .remedy = "Correct the vae section of the configuration."});
}

void check_positive(const char* name, int64_t value) {
  if (value <= 0) fail(std::string(name) + " is not positive", std::to_string(value), "1 or more");
}

// An averaging or duplicating shortcut works on groups: one width times the block must be a
// multiple of the other.
void check_groups(int64_t numerator, int64_t denominator, const char* which) {
  if (numerator % denominator == 0) return;
  fail(std::string(which) + " does not divide into groups",
       std::to_string(numerator) + " / " + std::to_string(denominator), "a whole number");
}

void check_shortcuts(const VaeConfig& c) {
  const size_t stages = c.dim_mult.size();
  for (size_t i = 0; i < stages; ++i) {
    const bool last = i + 1 == stages;
    const int64_t block = last ? 1 : 4 * (c.temporal_downsample[i] ? 2 : 1);
    const int64_t before = i == 0 ? 1 : c.dim_mult[i - 1];
    check_groups(before * block, c.dim_mult[i], "averaging shortcut");
    if (last) continue;
    // The decoder's stage that undoes it: from width `after` to width dim_mult[i + 1].
    const int64_t after = i + 2 < stages ? c.dim_mult[i + 2] : c.dim_mult[i + 1];
    check_groups(c.dim_mult[i + 1] * block, after, "duplicating shortcut");
  }
}

}  // namespace

int64_t VaeConfig::spatial_stride() const {
  return patch() << (dim_mult.empty() ? 0 : dim_mult.size() - 1);
}

int64_t VaeConfig::temporal_stride() const {
  int64_t stride = 1;
  for (const bool halves : temporal_downsample) stride *= halves ? 2 : 1;
  return stride;
}

VaeConfig vae_wan21() {
  VaeConfig config{.kind = VaeKind::kWan21, .dim = 96, .dec_dim = 96, .z_dim = 16};
  const LatentNormalisation& n = vae_normalisation(VaeKind::kWan21);
  config.mean.assign(n.mean.begin(), n.mean.end());
  config.std.assign(n.std.begin(), n.std.end());
  return config;
}

VaeConfig vae_wan22() {
  VaeConfig config;
  const LatentNormalisation& n = vae_normalisation(VaeKind::kWan22);
  config.mean.assign(n.mean.begin(), n.mean.end());
  config.std.assign(n.std.begin(), n.std.end());
  return config;
}

void check(const VaeConfig& c) {
  check_positive("dim", c.dim);
  check_positive("dec_dim", c.dec_dim);
  check_positive("z_dim", c.z_dim);
  check_positive("num_res_blocks", c.num_res_blocks);
  if (c.dim_mult.empty()) fail("dim_mult is empty", "[]", "one entry a stage");
  for (const int64_t mult : c.dim_mult) check_positive("dim_mult", mult);
  if (c.temporal_downsample.size() + 1 != c.dim_mult.size()) {
    fail("temporal_downsample has another length", std::to_string(c.temporal_downsample.size()),
         std::to_string(c.dim_mult.size() - 1) + ", one a stage but the last");
  }
  for (const auto* list : {&c.mean, &c.std}) {
    if (!list->empty() && static_cast<int64_t>(list->size()) != c.z_dim) {
      fail("latent normalisation has another length", std::to_string(list->size()),
           "z_dim = " + std::to_string(c.z_dim));
    }
  }
  for (const double std : c.std) {
    if (!(std > 0)) fail("latent std is not positive", std::to_string(std), "above 0");
  }
  if (c.kind == VaeKind::kWan21 && c.dec_dim != c.dim) {
    fail("Wan2.1 has one width", "dec_dim " + std::to_string(c.dec_dim),
         "dim = " + std::to_string(c.dim));
  }
  if (c.kind == VaeKind::kWan22) check_shortcuts(c);
}

void check_clip(const VaeConfig& c, int64_t frames, int64_t height, int64_t width) {
  if (frames < 1 || (frames - 1) % c.temporal_stride() != 0) {
    fail("number of frames does not fit", std::to_string(frames),
         "1 + a multiple of " + std::to_string(c.temporal_stride()));
  }
  const int64_t stride = c.spatial_stride();
  if (height < stride || width < stride || height % stride != 0 || width % stride != 0) {
    fail("picture size does not fit", std::to_string(height) + " x " + std::to_string(width),
         "multiples of " + std::to_string(stride));
  }
}

}  // namespace wam
