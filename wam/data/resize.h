// Bilinear resizing of float pictures, with PyTorch's sampling rules (align_corners false), its
// float32 weights and its order of passes: rows are resized along x first, then along y.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "wam/tensor/host_tensor.h"

namespace wam::data {

// Weighted sums along one side. Output i is the sum over j < num_taps of weights[i][j] times input
// starts[i] + j.
struct ResizeTaps {
  int64_t in_size = 0, out_size = 0, num_taps = 0;
  std::vector<int32_t> starts;  // [out_size], starts[i] + num_taps <= in_size
  std::vector<float> weights;   // [out_size, num_taps], rows sum to one
};

// The triangle filter, stretched when shrinking: F.interpolate(mode="bilinear", antialias=True).
ResizeTaps antialias_taps(int64_t in_size, int64_t out_size);

// Resizes pictures of three channels with antialias, as torchvision's Resize does; a picture of the
// right size stays as it is. Inside, a pixel is four floats side by side (the fourth unused), so
// that one pixel is one vector. Immutable, usable by many threads; each brings its own scratch.
class AntialiasResize {
 public:
  // Writes input row y as pixels of four floats, [in_w, 4].
  using FillRow = std::function<void(int64_t y, std::span<float> row)>;

  AntialiasResize(int64_t in_h, int64_t in_w, int64_t out_h, int64_t out_w);
  // The result is planar: [3, out_h, out_w].
  void run(const FillRow& fill_row, std::span<float> out, std::vector<float>& scratch) const;

 private:
  ResizeTaps x_, y_;
};

// F.interpolate(mode="bilinear", align_corners=False) without antialias, of planar pictures.
void resize_bilinear(std::span<const float> in, int64_t channels, int64_t in_h, int64_t in_w,
                     int64_t out_h, int64_t out_w, std::span<float> out);

// What the frozen encoders read: frames [T, H, W, 3] u8 -> [3, T, height, width] f32 in [-1, 1],
// resized without antialias after scaling if the size differs. Samples stay u8 at the tiled size
// on their way to the device, because rounding a resized picture to u8 would be another input; a
// device program does this step itself, the CPU calls this function.
HostTensor frames_to_model_input(const HostTensor& frames, int64_t height, int64_t width);

}  // namespace wam::data
