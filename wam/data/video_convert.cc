#include "wam/data/video_convert.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "wam/base/check.h"
#include "wam/base/error.h"

namespace wam::data {
namespace {

// libswscale writes whole vectors: rows of other widths are converted into padded memory first.
constexpr int kSafeWidth = 32;
constexpr size_t kOverrun = 256;

// The "J" formats are the plain ones with full range, under names libswscale calls deprecated.
int plain_format(int format) {
  switch (format) {
    case AV_PIX_FMT_YUVJ420P:
      return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P:
      return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P:
      return AV_PIX_FMT_YUV444P;
    case AV_PIX_FMT_YUVJ440P:
      return AV_PIX_FMT_YUV440P;
    default:
      return format;
  }
}

struct Picture {
  const uint8_t* pixels = nullptr;
  int64_t row_bytes = 0;
  int width = 0, height = 0;
};

// Copies the picture turned clockwise.
void turn(const Picture& source, int rotation, uint8_t* target) {
  const bool is_turned = rotation % 180 != 0;
  const int width = is_turned ? source.height : source.width;
  const int height = is_turned ? source.width : source.height;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x, target += 3) {
      int from_x = x, from_y = y;
      if (rotation == 90) from_x = y, from_y = source.height - 1 - x;
      if (rotation == 180) from_x = source.width - 1 - x, from_y = source.height - 1 - y;
      if (rotation == 270) from_x = source.width - 1 - y, from_y = x;
      std::memcpy(target, source.pixels + from_y * source.row_bytes + from_x * 3, 3);
    }
  }
}

}  // namespace

void PictureConverter::prepare(const Key& key) {
  if (key == key_ && scaler_ != nullptr) return;
  const auto format = static_cast<AVPixelFormat>(plain_format(key.format));
  scaler_.reset(sws_getContext(key.width, key.height, format, key.width, key.height,
                               AV_PIX_FMT_RGB24, SWS_BILINEAR, nullptr, nullptr, nullptr));
  if (scaler_ == nullptr) {
    throw DataError({.where = "video",
                     .what = "pixel format cannot be converted to RGB",
                     .got = std::to_string(key.format),
                     .remedy = "Re-encode the video as yuv420p."});
  }
  const int* matrix = sws_getCoefficients(key.matrix);
  sws_setColorspaceDetails(scaler_.get(), matrix, key.full_range, matrix, 1, 0, 1 << 16, 1 << 16);
  key_ = key;
}

void PictureConverter::convert(const AVFrame& picture, int rotation, std::span<uint8_t> rgb_hwc) {
  const int width = picture.width, height = picture.height;
  WAM_CHECK(rgb_hwc.size() == static_cast<size_t>(width) * height * 3) << rgb_hwc.size();
  const bool is_full =
      picture.color_range == AVCOL_RANGE_JPEG || plain_format(picture.format) != picture.format;
  prepare({width, height, picture.format, picture.colorspace, is_full ? 1 : 0});
  const bool is_direct = rotation == 0 && width % kSafeWidth == 0;
  int stride = width * 3;
  uint8_t* target = rgb_hwc.data();
  if (!is_direct) {
    stride = (width + kSafeWidth - 1) / kSafeWidth * kSafeWidth * 3;
    padded_.resize(static_cast<size_t>(stride) * height + kOverrun);
    target = padded_.data();
  }
  uint8_t* targets[1] = {target};
  const int strides[1] = {stride};
  sws_scale(scaler_.get(), picture.data, picture.linesize, 0, height, targets, strides);
  if (is_direct) return;
  if (rotation != 0) return turn({target, stride, width, height}, rotation, rgb_hwc.data());
  for (int y = 0; y < height; ++y) {
    std::copy_n(target + static_cast<int64_t>(y) * stride, width * 3,
                rgb_hwc.data() + static_cast<int64_t>(y) * width * 3);
  }
}

}  // namespace wam::data
