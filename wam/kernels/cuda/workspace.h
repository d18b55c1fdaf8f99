// What the CUDA kernels need beside their operands: pure functions of shapes, compiled in every
// build, so that plans for a GPU need no GPU and no CUDA.
#pragma once

#include <cstdint>
#include <string_view>

#include "wam/kernels/kernel.h"

namespace wam {

// Whether the CUDA build has a kernel for the op.
bool has_cuda_kernel(std::string_view op);
// Scratch bytes of the op's CUDA kernel.
int64_t cuda_workspace_bytes(std::string_view op, const KernelSignature& signature);

}  // namespace wam

namespace wam::cuda {

// Rows of tokens and of the tables they index; see token_norm.h.
struct TokenSizes {
  int64_t batch = 1, length = 0, width = 0, num_rows = 1;
  int64_t tokens() const { return batch * length; }
};
// Blocks that share rows of `width` elements; also the number of parts their sums consist of.
int64_t row_blocks(int64_t rows, int64_t width);
// For sums by table row and sums over all tokens.
int64_t token_norm_workspace(const TokenSizes& sizes, int segmented, int whole);

int64_t column_sums_parts(int64_t rows, int64_t columns);
int64_t column_sums_workspace(int64_t rows, int64_t columns);
int64_t sum_squares_workspace();
int64_t weighted_mse_workspace(int64_t rows);
// Blocks of each of `parts` parts of rows; and for sums of `sums` parts.
int64_t qk_rows_blocks(int64_t rows, int64_t parts, int64_t width);
int64_t qk_rows_workspace(int64_t rows, int64_t normed, int64_t sums, int64_t width);

// Parts of the queries over which the keys' gradient of attention is summed one by one, where there
// are too few keys, heads and samples for the multiprocessors.
int64_t attention_parts(int64_t batch_heads, int64_t queries, int64_t keys);
int64_t attention_stats_numbers(int64_t batch_heads, int64_t queries);

// Attention of one wide head by products: scores [together, length, pitch] f32 of so many samples at
// a time as stay within a bound.
struct WideAttentionSizes {
  int64_t batch = 0, length = 0, d = 0;
};
// Whether a block_attention is of that kind.
bool is_wide_attention(const KernelSignature& signature);
WideAttentionSizes wide_attention_sizes(const KernelSignature& signature);
int64_t wide_attention_pitch(const WideAttentionSizes& sizes);
int64_t wide_attention_together(const WideAttentionSizes& sizes);  // divides the batch
int64_t wide_attention_score_bytes(const WideAttentionSizes& sizes);

// conv3d on tensor cores reads packed filters [O, taps, width], zeros from C on, and x with lines of
// `pixels` pixels of `width` channels, `copied` where x is not so already. Folded: few channels, so
// that all taps along a line lie side by side as channels of one; zeros around lines are written.
struct ConvLayout {
  int64_t width = 0, pixels = 0;
  bool copied = false, folded = false;
  int64_t filter_bytes = 0, x_bytes = 0;
};
bool conv_on_tensor_cores(DType dtype, int64_t out_channels);
ConvLayout conv_layout(const KernelSignature& signature);

// Bound that cuBLASLt's choice must keep to.
inline constexpr int64_t kGemmWorkspace = int64_t{32} << 20;

}  // namespace wam::cuda
