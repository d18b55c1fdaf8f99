// Pictures on their way into the encoders: bytes to numbers, another size, 2 x 2 pixels into
// channels; and the averaging shortcut.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wam/tensor/dtype.h"

namespace wam::cuda {

// (x / 255 - 0.5) / 0.5 of bytes.
void launch_pixels_to_float(int64_t count, const void* x, float* y, cudaStream_t stream);

struct ResizeImage {
  int64_t pictures = 0, height = 0, width = 0, channels = 0, out_height = 0, out_width = 0;
  bool bicubic = false;
};
void launch_resize_image(const ResizeImage& a, const float* x, float* y, cudaStream_t stream);

// [frames, height, width, channels] -> [frames, height / 2, width / 2, 4 channels].
struct FoldPixels {
  int64_t frames = 0, height = 0, width = 0, channels = 0;
  DType from = DType::kF32, to = DType::kF32;
};
void launch_fold_pixels(const FoldPixels& a, const void* x, void* y, cudaStream_t stream);

// out = y + averages of x; sizes of x, but for out_channels. See ops/average_down.h.
struct AverageDown {
  DType dtype = DType::kF32;
  int64_t batch = 0, time = 0, height = 0, width = 0, channels = 0, out_channels = 0;
  int64_t ft = 1, fs = 1;
};
void launch_average_down(const AverageDown& a, const void* x, const void* y, void* out,
                         cudaStream_t stream);

}  // namespace wam::cuda
