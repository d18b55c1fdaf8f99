// Convolution over time, height and width of channels-last tensors: on Hopper in bf16 a product on
// tensor cores whose rows the copy engine gathers, elsewhere plain loops.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "wam/kernels/kernel.h"

namespace wam::cuda {

struct ConvSizes {
  // Dims in the order width, height, time.
  int64_t batch = 0, channels = 0, out_channels = 0;
  int64_t in[3] = {}, out[3] = {}, kernel[3] = {}, stride[3] = {}, before[3] = {};
  // As x lies for the tensor cores: elements between pixels, pixels between lines.
  int64_t pixel_pitch = 0, line_pitch = 0;

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_rows() const { return batch * in[0] * in[1] * in[2]; }
  int64_t out_rows() const { return batch * out[0] * out[1] * out[2]; }
};
ConvSizes conv_sizes(const KernelSignature& s);

struct ConvOperands {
  const void *x = nullptr, *weight = nullptr, *bias = nullptr, *residual = nullptr;
  void *y = nullptr, *workspace = nullptr;
};

void launch_plain_conv3d(const ConvSizes& z, DType dtype, const ConvOperands& operands,
                         cudaStream_t stream);

// bf16 [O, C, taps] -> [O, taps, width], zeros from C on.
void launch_pack_filters(int64_t out_channels, int64_t channels, int64_t taps, int64_t width,
                         const void* weight, void* packed, cudaStream_t stream);
// bf16 lines of `in_pixels` pixels of `channels` -> lines of `pixels` pixels of `width` (a multiple
// of 8), zeros in the first `before` pixels and wherever there is nothing.
struct PadPixels {
  int64_t lines = 0, in_pixels = 0, channels = 0, before = 0, pixels = 0, width = 0;
};
void launch_pad_pixels(const PadPixels& pad, const void* x, void* y, cudaStream_t stream);

// x and weight lie as conv_layout() says. One block a multiprocessor works through tiles of
// 256 output positions: two boxes of positions, [width, height, time, samples], of at most 128.
struct ConvTiling {
  int64_t columns = 0;  // output channels of a tile
  int64_t box[4] = {};  // positions
  int64_t blocks[4] = {};
  int64_t boxes() const { return blocks[0] * blocks[1] * blocks[2] * blocks[3]; }
  // Boxes eight positions wide, whose input is fetched once for the three taps of a line.
  bool lines = false;
};
// All that are possible, whose results have the same bits; and the one that should be fastest.
std::vector<ConvTiling> conv_tilings(const ConvSizes& sizes);
ConvTiling conv_tiling(const ConvSizes& sizes);
void launch_hopper_conv3d(const ConvSizes& z, const ConvTiling& tiling,
                          const ConvOperands& operands, cudaStream_t stream);

}  // namespace wam::cuda
