// The seam between sublayers, forward and backward, for every op made of residual, gate, layer
// norm, modulation: absent parts are null. Tokens are rows [batch, length, width] of the floating
// type; tables [batch, num_rows, width] f32 are read at row index[l].
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wam/kernels/cuda/workspace.h"
#include "wam/tensor/dtype.h"

namespace wam::cuda {

// x_out = x + o * gate (x alone, o alone and no gate allowed); n = (x_out - mean) * rstd or,
// without `normalize`, x_out; h = n * (1 + scale) + shift, or n * weight + bias, or n.
struct TokenNormForward {
  TokenSizes sizes;
  float eps = 0;
  bool normalize = true;
  const void *x = nullptr, *o = nullptr;
  const float *gate = nullptr, *scale = nullptr, *shift = nullptr;
  const void *weight = nullptr, *bias = nullptr;
  const int32_t* index = nullptr;  // null: row 0
  void *x_out = nullptr, *h = nullptr;
  float* stats = nullptr;  // [tokens, 2]
};
void launch_token_norm_forward(DType dtype, const TokenNormForward& args, cudaStream_t stream);

// dn = dh * (1 + scale | weight); dx = dx_out + (dn through the norm, or dn); d_o = dx * gate;
// sums over the tokens of each table row: dgate = dx * o, dscale = dh * n, dshift = dh, in token
// order. With a weight (dweight and dbias) the latter two are sums over all tokens; so is dcolumn,
// of d_o, or of dx without o, before they are rounded: the gradient of a bias of what feeds the
// seam.
struct TokenNormBackward {
  TokenSizes sizes;
  bool normalize = true;
  const void *dh = nullptr, *dx_out = nullptr, *x = nullptr, *o = nullptr;
  const float *stats = nullptr, *gate = nullptr, *scale = nullptr;
  const void* weight = nullptr;
  const int32_t* index = nullptr;
  void *dx = nullptr, *d_o = nullptr;
  float *dgate = nullptr, *dscale = nullptr, *dshift = nullptr;    // [batch, num_rows, width]
  float *dweight = nullptr, *dbias = nullptr, *dcolumn = nullptr;  // [width]
  void* workspace = nullptr;  // token_norm_workspace(sizes, sums by table row, sums over all)
};
void launch_token_norm_backward(DType dtype, const TokenNormBackward& args, cudaStream_t stream);

}  // namespace wam::cuda
