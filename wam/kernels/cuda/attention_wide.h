// Attention of one head that is wider than the tensor-core kernels take, every query to every key:
// two batched products of cuBLASLt with a softmax between them.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "wam/kernels/cuda/workspace.h"

namespace wam::cuda {

// bf16 [batch, length, 3 d] -> out [batch, length, d], lse f32 [batch, length].
class WideAttention {
 public:
  WideAttention(const WideAttentionSizes& sizes, float scale);
  ~WideAttention();
  void run(const void* qkv, void* out, float* lse, void* workspace, cudaStream_t stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ScoreRows {
  int64_t rows = 0, length = 0, pitch = 0;  // pitch: f32 elements between rows
};
// Rows of f32 scores become bf16 probabilities in their place; lse gets the logarithms of the sums.
void launch_softmax_rows(const ScoreRows& sizes, float* scores, float* lse, cudaStream_t stream);

}  // namespace wam::cuda
