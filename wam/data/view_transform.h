// From camera frames to tiled pictures: crop, antialiased resize, colour jitter, truncation to u8,
// tiling. One draw per sample serves all its views and frames.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "wam/data/color_jitter.h"
#include "wam/data/crop.h"
#include "wam/data/embodiment.h"
#include "wam/data/resize.h"

namespace wam::data {

// What identifies a sample's random numbers: pure function of these, whoever draws them.
struct DrawKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t index = 0;  // place in the global batch
};

struct PictureDraw {
  CropBox crop;
  JitterDraw jitter;
};

// For cameras of height x width. In evaluation: centre crop, no jitter.
PictureDraw draw_picture(const PictureOptions& options, int64_t height, int64_t width,
                         bool training, const DrawKey& key);

// Applies one draw to frames of in_h x in_w. Owns its scratch: one per thread.
class ViewTransform {
 public:
  ViewTransform(const PictureOptions& options, int64_t in_h, int64_t in_w, const PictureDraw& draw);
  // frame [in_h, in_w, 3] -> view [view_height, view_width, 3].
  void run(std::span<const uint8_t> frame, std::span<uint8_t> view);

 private:
  void unpack_row(std::span<const uint8_t> frame, int64_t y, std::span<float> row) const;

  int64_t in_h_, in_w_, out_h_, out_w_;
  PictureDraw draw_;
  AntialiasResize resize_;
  std::vector<float> resized_, scratch_;  // planar; the resizer's
};

// One sample's tiled pictures, filled picture by picture.
class ViewTiler {
 public:
  // Cameras of in_h x in_w.
  ViewTiler(const Embodiment& embodiment, int64_t num_frames, int64_t in_h, int64_t in_w,
            bool training, const DrawKey& key);
  // Frame [in_h, in_w, 3] of view `view` at moment `t`.
  void put(int64_t view, int64_t t, std::span<const uint8_t> frame);
  // [T, H, W, 3], when every view of every moment has been put.
  HostTensor take() { return std::move(tiled_); }

 private:
  const Embodiment& embodiment_;
  ViewTransform transform_;
  HostTensor tiled_;
  std::vector<uint8_t> view_;
};

struct PictureSize {
  int64_t height = 0, width = 0;
};
// Throws DataError if the views' cameras differ in size (one crop could not serve them).
void check_equal_sizes(const Embodiment& embodiment, std::span<const PictureSize> sizes);

// Frames of every view, each [T, h, w, 3] u8 of one size -> [T, H, W, 3] u8. Throws DataError if
// the views differ in size (one crop could not serve them).
HostTensor tile_views(const Embodiment& embodiment, std::span<const HostTensor> views,
                      bool training, const DrawKey& key);

}  // namespace wam::data
