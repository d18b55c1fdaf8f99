#include "wam/data/view_transform.h"

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/data/tiling.h"

namespace wam::data {
namespace {

void check_equal_sizes(const Embodiment& embodiment, std::span<const HostTensor> views) {
  const Shape& first = views[0].shape();
  for (size_t v = 0; v < views.size(); ++v) {
    const Shape& shape = views[v].shape();
    WAM_CHECK(shape.ndim() == 4 && shape[3] == 3 && shape[0] == first[0]) << shape.to_string();
    if (shape[1] == first[1] && shape[2] == first[2]) continue;
    throw DataError(
        {.where = "view " + embodiment.views[v],
         .what = "camera of another size than view " + embodiment.views[0],
         .got = std::to_string(shape[1]) + " x " + std::to_string(shape[2]),
         .expected = std::to_string(first[1]) + " x " + std::to_string(first[2]),
         .remedy = "The views of an embodiment share one crop: use cameras of one size."});
  }
}

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
  const uint8_t* in = frame.data() + ((crop.top + y) * in_w_ + crop.left) * 3;
  float* out = row.data();
  for (int64_t x = 0; x < crop.width; ++x) {
    out[4 * x] = static_cast<float>(in[3 * x]) / 255.0f;
    out[4 * x + 1] = static_cast<float>(in[3 * x + 1]) / 255.0f;
    out[4 * x + 2] = static_cast<float>(in[3 * x + 2]) / 255.0f;
  }
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

HostTensor tile_views(const Embodiment& embodiment, std::span<const HostTensor> views,
                      bool training, const DrawKey& key) {
  WAM_CHECK(views.size() == embodiment.views.size() && !views.empty());
  check_equal_sizes(embodiment, views);
  const PictureOptions& options = embodiment.picture;
  const int64_t num_frames = views[0].shape()[0], in_h = views[0].shape()[1],
                in_w = views[0].shape()[2], h = options.view_height, w = options.view_width;
  ViewTransform transform(options, in_h, in_w, draw_picture(options, in_h, in_w, training, key));
  HostTensor tiled(DType::kU8,
                   {num_frames, embodiment.tiled_height(), embodiment.tiled_width(), 3});
  const auto in_bytes = static_cast<size_t>(in_h * in_w * 3);
  const auto out_bytes =
      static_cast<size_t>(embodiment.tiled_height() * embodiment.tiled_width() * 3);
  std::vector<uint8_t> view(static_cast<size_t>(h * w * 3));
  for (int64_t t = 0; t < num_frames; ++t) {
    const auto picture = tiled.as<uint8_t>().subspan(static_cast<size_t>(t) * out_bytes, out_bytes);
    for (size_t v = 0; v < views.size(); ++v) {
      transform.run(views[v].as<uint8_t>().subspan(static_cast<size_t>(t) * in_bytes, in_bytes),
                    view);
      place_view(embodiment.tiling, static_cast<int64_t>(v), h, w, view, picture);
    }
    blacken_unused(embodiment.tiling, std::ssize(views), h, w, picture);
  }
  return tiled;
}

}  // namespace wam::data
