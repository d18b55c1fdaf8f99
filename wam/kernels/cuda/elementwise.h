// Elementwise work of one or two inputs. Arithmetic in f32.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wam/tensor/dtype.h"

namespace wam::cuda {

enum class Unary { kScale, kSilu, kGeluTanh, kGeluErf, kRelu };
// kScale: factor * x + offset.
struct UnaryArgs {
  Unary op = Unary::kScale;
  DType dtype = DType::kF32;
  int64_t count = 0;
  float factor = 1, offset = 0;
};
void launch_unary(const UnaryArgs& args, const void* x, void* y, cudaStream_t stream);

// y's element i is at i % period. The gradients take (dy, x).
enum class Binary { kAdd, kSub, kMul, kSiluGrad, kGeluTanhGrad, kGeluErfGrad, kReluGrad };
struct BinaryArgs {
  Binary op = Binary::kAdd;
  DType dtype = DType::kF32;
  int64_t count = 0, period = 0;
};
void launch_binary(const BinaryArgs& args, const void* x, const void* y, void* out,
                   cudaStream_t stream);

// f32 <-> bf16.
void launch_cast(DType from, DType to, int64_t count, const void* x, void* y, cudaStream_t stream);

}  // namespace wam::cuda
