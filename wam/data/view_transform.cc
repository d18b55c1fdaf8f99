#include "wam/data/view_transform.h"

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/data/tiling.h"
#include "wam/data/unpack_pixels.h"

namespace wam::data {
namespace {

// torch's (255 * x).to(uint8): truncation.
void pack(std::span<const float> planes, int64_t pixels, std::span<uint8_t> view) {
  const float* r = planes.data();
  const float* g = r + pixels;
  const float* b = g + pixels;
  uint8_t* out = view.data();
  for (int64_t i = 0; i < pixels; ++i, out += 3) {
    out[0] = static_cast<uint8_t>(static_cast<int32_t>(r[i] * 255.0f));
    out[1] = static_cast<uint8_t>(static_cast<int32_t>(g[i] * 255.0f));
    out[2] = static_cast<uint8_t>(static_cast<int32_t>(b[i] * 255.0f));
  }
}

}  // namespace

PictureDraw draw_picture(const PictureOptions& options, int64_t height, int64_t width,
                         bool training, const DrawKey& key) {
  if (!training) return {center_crop(height, width, options.crop_scale), {}};
  Random crop(key.seed, RandomUse::kCrop, key.step, key.index);
  Random jitter(key.seed, RandomUse::kJitter, key.step, key.index);
  return {random_crop(height, width, options.crop_scale, crop),
          draw_jitter(options.jitter, jitter)};
}

ViewTransform::ViewTransform(const PictureOptions& options, int64_t in_h, int64_t in_w,
                             const PictureDraw& draw)
    : in_h_(in_h),
      in_w_(in_w),
      out_h_(options.view_height),
      out_w_(options.view_width),
      draw_(draw),
      resize_(draw.crop.height, draw.crop.width, out_h_, out_w_),
      resized_(static_cast<size_t>(3 * out_h_ * out_w_)) {
  const CropBox& crop = draw.crop;
  WAM_CHECK(crop.top >= 0 && crop.left >= 0 && crop.top + crop.height <= in_h &&
            crop.left + crop.width <= in_w);
}

void ViewTransform::unpack_row(std::span<const uint8_t> frame, int64_t y,
                               std::span<float> row) const {
  const CropBox& crop = draw_.crop;
  unpack_pixels(frame.subspan(static_cast<size_t>(((crop.top + y) * in_w_ + crop.left) * 3),
                              static_cast<size_t>(crop.width * 3)),
                row);
}

void ViewTransform::run(std::span<const uint8_t> frame, std::span<uint8_t> view) {
  const auto pixels = static_cast<size_t>(out_h_ * out_w_);
  WAM_CHECK(std::ssize(frame) == in_h_ * in_w_ * 3 && view.size() == pixels * 3);
  const auto fill = [&](int64_t y, std::span<float> row) { unpack_row(frame, y, row); };
  resize_.run(fill, resized_, scratch_);
  if (draw_.jitter.any()) {
    const std::span<float> all(resized_);
    apply_jitter(draw_.jitter, {all.subspan(0, pixels), all.subspan(pixels, pixels),
                                all.subspan(2 * pixels, pixels)});
  }
  pack(resized_, static_cast<int64_t>(pixels), view);
}

ViewTiler::ViewTiler(const Embodiment& embodiment, int64_t num_frames, int64_t in_h, int64_t in_w,
                     bool training, const DrawKey& key)
    : embodiment_(embodiment),
      transform_(embodiment.picture, in_h, in_w,
                 draw_picture(embodiment.picture, in_h, in_w, training, key)),
      tiled_(DType::kU8, {num_frames, embodiment.tiled_height(), embodiment.tiled_width(), 3}),
      view_(
          static_cast<size_t>(embodiment.picture.view_height * embodiment.picture.view_width * 3)) {
}

void ViewTiler::put(int64_t view, int64_t t, std::span<const uint8_t> frame) {
  const PictureOptions& options = embodiment_.picture;
  const auto bytes = static_cast<size_t>(tiled_.size_bytes() / tiled_.shape()[0]);
  const auto picture = tiled_.as<uint8_t>().subspan(static_cast<size_t>(t) * bytes, bytes);
  transform_.run(frame, view_);
  place_view(embodiment_.tiling, view, options.view_height, options.view_width, view_, picture);
  if (view > 0) return;
  blacken_unused(embodiment_.tiling, std::ssize(embodiment_.views), options.view_height,
                 options.view_width, picture);
}

void check_equal_sizes(const Embodiment& embodiment, std::span<const PictureSize> sizes) {
  for (size_t v = 0; v < sizes.size(); ++v) {
    if (sizes[v].height == sizes[0].height && sizes[v].width == sizes[0].width) continue;
    throw DataError(
        {.where = "view " + embodiment.views[v],
         .what = "camera of another size than view " + embodiment.views[0],
         .got = std::to_string(sizes[v].height) + " x " + std::to_string(sizes[v].width),
         .expected = std::to_string(sizes[0].height) + " x " + std::to_string(sizes[0].width),
         .remedy = "The views of an embodiment share one crop: use cameras of one size."});
  }
}

HostTensor tile_views(const Embodiment& embodiment, std::span<const HostTensor> views,
                      bool training, const DrawKey& key) {
  WAM_CHECK(views.size() == embodiment.views.size() && !views.empty());
  const Shape& first = views[0].shape();
  std::vector<PictureSize> sizes;
  for (const HostTensor& view : views) {
    const Shape& shape = view.shape();
    WAM_CHECK(shape.ndim() == 4 && shape[3] == 3 && shape[0] == first[0]) << shape.to_string();
    sizes.push_back({shape[1], shape[2]});
  }
  check_equal_sizes(embodiment, sizes);
  ViewTiler tiler(embodiment, first[0], first[1], first[2], training, key);
  const auto bytes = static_cast<size_t>(first[1] * first[2] * 3);
  for (size_t v = 0; v < views.size(); ++v) {
    for (int64_t t = 0; t < first[0]; ++t) {
      tiler.put(static_cast<int64_t>(v), t,
                views[v].as<uint8_t>().subspan(static_cast<size_t>(t) * bytes, bytes));
    }
  }
  return tiler.take();
}

}  // namespace wam::data
