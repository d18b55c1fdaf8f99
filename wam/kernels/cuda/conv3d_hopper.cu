// Host side of the tensor-core convolutions: what the copy engine is told.
#include "wam/kernels/cuda/conv3d_hopper.cuh"
#include "wam/kernels/cuda/tensor_map.h"

namespace wam::cuda {
namespace {

using conv::ConvProblem;
using conv::kBoxes;

// Boxes of 64 channels and the positions under a box of outputs.
CUtensorMap map_of_input(const ConvSizes& z, const ConvTiling& t, const void* x) {
  const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
  TensorMapSpec spec{.dims = 5,
                     .sizes = {size(round_up(z.channels, 8)), size(z.in[0]), size(z.in[1]),
                               size(z.in[2]), size(z.batch)}};
  spec.strides[0] = size(z.pixel_pitch * 2);
  spec.strides[1] = spec.strides[0] * size(z.line_pitch);
  spec.strides[2] = spec.strides[1] * spec.sizes[2];
  spec.strides[3] = spec.strides[2] * spec.sizes[3];
  spec.box[0] = 64;
  spec.steps[0] = 1;
  for (int d = 0; d < 4; ++d) {
    const int64_t step = d < 3 ? z.stride[d] : 1;
    spec.box[d + 1] = static_cast<uint32_t>(t.box[d] * step);
    spec.steps[d + 1] = static_cast<uint32_t>(step);
  }
  if (t.lines) spec.box[1] += static_cast<uint32_t>(z.kernel[0] - 1);
  return make_tensor_map(x, spec);
}

CUtensorMap map_of_filters(const ConvSizes& z, const ConvTiling& t, const void* w) {
  const auto c = static_cast<uint64_t>(round_up(z.channels, 8)),
             taps = static_cast<uint64_t>(z.taps()), out = static_cast<uint64_t>(z.out_channels);
  return make_tensor_map(w, {.dims = 4,
                             .sizes = {c, taps, out, 1},
                             .strides = {c * 2, taps * c * 2, out * taps * c * 2},
                             .box = {64, 1, static_cast<uint32_t>(t.columns), 1},
                             .steps = {1, 1, 1, 1}});
}

ConvProblem problem_of(const ConvSizes& z, const ConvTiling& t, const ConvOperands& a) {
  ConvProblem p{};
  p.x = map_of_input(z, t, a.x);
  p.w = map_of_filters(z, t, a.weight);
  p.bias = static_cast<const bf16*>(a.bias);
  p.residual = static_cast<const bf16*>(a.residual);
  p.y = static_cast<bf16*>(a.y);
  for (int d = 0; d < 4; ++d) {
    p.box[d] = static_cast<int>(t.box[d]);
    p.blocks[d] = static_cast<int>(t.blocks[d]);
    p.out[d] = static_cast<int>(d < 3 ? z.out[d] : z.batch);
    if (d == 3) continue;
    p.kernel[d] = static_cast<int>(z.kernel[d]);
    p.stride[d] = static_cast<int>(z.stride[d]);
    p.before[d] = static_cast<int>(z.before[d]);
  }
  p.channels = static_cast<int>(z.channels);
  p.out_channels = static_cast<int>(z.out_channels);
  p.column_tiles = static_cast<int>(ceil_div(z.out_channels, t.columns));
  p.tiles = static_cast<int>(ceil_div(t.boxes(), kBoxes)) * p.column_tiles;
  return p;
}

}  // namespace

void launch_hopper_conv3d(const ConvSizes& z, const ConvTiling& tiling,
                          const ConvOperands& operands, cudaStream_t stream) {
  const ConvProblem p = problem_of(z, tiling, operands);
  const auto columns = static_cast<int>(tiling.columns);
  if (tiling.lines) return conv::launch_lines(columns, p, stream);
  conv::launch_taps(columns, p, stream);
}

}  // namespace wam::cuda
