// Private to the video_* files: decoded pictures to RGB bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wam/data/video_ffmpeg.h"

namespace wam::data {

// Converts with libswscale as torchcodec does: the stream's matrix (BT.601 when it names none) and
// range, bilinear chroma, no dither. Keeps its tables between pictures of one format. Not
// thread-safe.
class PictureConverter {
 public:
  // `rgb_hwc`: height*width*3 bytes of the picture after turning it `rotation` degrees clockwise.
  void convert(const AVFrame& picture, int rotation, std::span<uint8_t> rgb_hwc);

 private:
  struct Key {
    int width = 0, height = 0, format = -1, matrix = -1, full_range = -1;
    bool operator==(const Key&) const = default;
  };
  void prepare(const Key& key);
  Key key_;
  FfmpegOwned<SwsContext> scaler_;
  std::vector<uint8_t> padded_;  // a picture with rows that SIMD code may overrun
};

}  // namespace wam::data
