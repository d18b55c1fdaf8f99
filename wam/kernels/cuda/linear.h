// Shared by linear, linear_gelu and linear_dgrad_gelu: a row-major layer as cuBLASLt's column-major
// products. x [rows, k], weight [n, k] or, with kn, [k, n].
#pragma once

#include "wam/kernels/cuda/gemm.h"
#include "wam/kernels/kernel.h"

namespace wam::cuda {

struct LinearSizes {
  int64_t rows = 0, n = 0, k = 0;
  bool kn = false;
  DType dtype = DType::kF32;
};
// Input 0 is x or dy, input 1 the weight.
LinearSizes linear_sizes(const KernelSignature& s);

// y^T [n, rows] = W x^T; operands a = W, b = x.
GemmSpec forward_spec(const LinearSizes& z, GemmSpec::Epilogue epilogue);
// dx^T [k, rows] = W^T dy^T; operands a = W, b = dy.
GemmSpec dgrad_spec(const LinearSizes& z, GemmSpec::Epilogue epilogue);

}  // namespace wam::cuda
