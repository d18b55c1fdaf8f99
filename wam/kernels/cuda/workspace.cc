// Scratch sizes: pure functions of shapes, compiled in every build, so that plans need no GPU.
#include "wam/kernels/cuda/workspace.h"

#include <algorithm>

#include "wam/tensor/attention_rects.h"

namespace wam::cuda {
namespace {

int64_t parts_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

}  // namespace

int64_t row_blocks(int64_t rows, int64_t width) {
  // At least a few rows each, so that fetching ahead pays; no more than a list of them has room
  // for.
  constexpr int64_t kMultiprocessors = 132, kThreads = 768, kFewestRows = 6, kMostRows = 512;
  const int64_t threads = std::max<int64_t>(32, parts_of(width, 256) * 32);
  const int64_t wanted = kMultiprocessors * std::max<int64_t>(1, kThreads / threads);
  return std::min(parts_of(rows, kFewestRows), std::max(wanted, parts_of(rows, kMostRows)));
}

int64_t token_norm_workspace(const TokenSizes& z, int segmented, int whole) {
  const auto padded = [](int64_t count) { return (count + 3) / 4 * 4; };
  const int64_t schedule = 4 * (2 * padded(z.length) + padded(z.num_rows + 1));
  const int64_t blocks = row_blocks(z.tokens(), z.width);
  const int64_t parts = (blocks + z.batch * z.num_rows) * segmented + blocks * whole;
  return schedule + 32 + parts * z.width * 4;
}

int64_t column_sums_parts(int64_t rows, int64_t columns) {
  if (rows == 0 || columns == 0) return 0;
  const int64_t wanted = std::max<int64_t>(1, 1056 / parts_of(columns, 256));
  return std::min(wanted, parts_of(rows, 32));
}

int64_t column_sums_workspace(int64_t rows, int64_t columns) {
  return column_sums_parts(rows, columns) * columns * 4;
}

int64_t sum_squares_workspace() { return 1056 * 8; }

int64_t weighted_mse_workspace(int64_t rows) { return rows * 8; }

int64_t qk_rows_blocks(int64_t rows, int64_t parts, int64_t width) {
  const int64_t all = row_blocks(rows * parts, width);
  return rows == 0 ? 0 : std::max<int64_t>(1, all / parts);
}

int64_t qk_rows_workspace(int64_t rows, int64_t normed, int64_t sums, int64_t width) {
  return qk_rows_blocks(rows, normed, width) * sums * width * 4;
}

int64_t attention_parts(int64_t batch_heads, int64_t queries, int64_t keys) {
  constexpr int64_t kMultiprocessors = 132, kTile = 128, kStep = 64, kFewestSteps = 4;
  const int64_t items = batch_heads * parts_of(keys, kTile), steps = parts_of(queries, kStep);
  if (items == 0 || steps == 0) return 1;
  const int64_t wanted =
      std::clamp<int64_t>(kMultiprocessors / items, 1, std::max<int64_t>(steps / kFewestSteps, 1));
  return parts_of(steps, parts_of(steps, wanted));  // none of them empty
}

int64_t attention_stats_numbers(int64_t batch_heads, int64_t queries) {
  return (2 * batch_heads * queries + 3) / 4 * 4;  // what follows is aligned to 16 bytes
}

bool conv_on_tensor_cores(DType dtype, int64_t out_channels) {
  return dtype == DType::kBF16 && out_channels % 8 == 0;
}

bool is_wide_attention(const KernelSignature& s) {
  constexpr int64_t kWidestHead = 128, kMostKeys = 12000;  // of the other kernels; of shared memory
  const TensorType& qkv = s.inputs[0];
  const int64_t length = qkv.shape[1], width = qkv.shape[2] / 3;
  if (qkv.dtype != DType::kBF16 || s.attrs.integer("heads") != 1 || width <= kWidestHead ||
      width % 8 != 0 || length == 0 || length > kMostKeys || qkv.shape[0] == 0) {
    return false;
  }
  const std::vector<AttentionRect> rects = parse_rects(s.attrs.integers("rects"), length);
  return rects.size() == 1 && num_pairs(rects) == length * length;
}

WideAttentionSizes wide_attention_sizes(const KernelSignature& s) {
  const Shape& qkv = s.inputs[0].shape;
  return {qkv[0], qkv[1], qkv[2] / 3};
}

int64_t wide_attention_pitch(const WideAttentionSizes& z) { return parts_of(z.length, 8) * 8; }

int64_t wide_attention_together(const WideAttentionSizes& z) {
  constexpr int64_t kScoreBytes = int64_t{64} << 20;
  int64_t together = std::clamp<int64_t>(
      kScoreBytes / (z.length * wide_attention_pitch(z) * 4), 1, z.batch);
  while (z.batch % together != 0) --together;
  return together;
}

int64_t wide_attention_score_bytes(const WideAttentionSizes& z) {
  return parts_of(wide_attention_together(z) * z.length * wide_attention_pitch(z) * 4, 256) * 256;
}

ConvLayout conv_layout(const KernelSignature& s) {
  constexpr int64_t kFew = 16, kMostFolded = 64;
  const Shape &x = s.inputs[0].shape, &w = s.inputs[1].shape, &y = s.outputs[0].shape;
  ConvLayout l{.width = parts_of(x[4], 8) * 8, .pixels = x[3]};
  l.copied = l.width != x[4];
  if (x[4] <= kFew && w[4] > 1 && w[4] * kFew <= kMostFolded && s.attrs.integers("stride")[2] == 1) {
    l = {.width = kFew, .pixels = y[3] + w[4] - 1, .copied = true, .folded = true};
  }
  const auto aligned = [](int64_t bytes) { return parts_of(bytes, 256) * 256; };
  l.filter_bytes = aligned(w[0] * w[2] * w[3] * w[4] * l.width * 2);
  if (l.copied) l.x_bytes = aligned(x[0] * x[1] * x[2] * l.pixels * l.width * 2);
  return l;
}

}  // namespace wam::cuda

namespace wam {
namespace {

struct ListedOp {
  std::string_view name;
  bool cuda;
};
constexpr ListedOp kOps[] = {
#define WAM_OP(name, stem, cpu, cuda) {#name, cuda != 0},
#include "wam/ops/op_list.inc"
#undef WAM_OP
};

int64_t linear_wgrad_bytes(const KernelSignature& s) {
  if (!s.attrs.flag("bias")) return cuda::kGemmWorkspace;
  return cuda::kGemmWorkspace +
         cuda::column_sums_workspace(s.inputs[0].shape.num_rows(), s.inputs[0].shape[-1]);
}

// Tokens of x, and rows of the table that is input `table`.
cuda::TokenSizes indexed(const Shape& x, const Shape& table) {
  return {x[0], x[1], x[2], table[1]};
}

int64_t residual_norm_grad_bytes(const KernelSignature& s) {
  const bool gate = s.attrs.text("residual") == "gate",
             modulate = s.attrs.text("norm") == "modulate";
  const Shape& x = s.inputs[0].shape;
  const int whole = (modulate ? 0 : 2) + (s.attrs.flag("bias_grad") ? 1 : 0);
  if (!gate && !modulate) return cuda::token_norm_workspace({1, x[0] * x[1], x[2], 1}, 0, whole);
  const size_t table = 3 + (s.attrs.flag("dx_out") ? 1u : 0u) + (gate ? 1u : 0u);
  return cuda::token_norm_workspace(indexed(x, s.inputs[table].shape),
                                    (gate ? 1 : 0) + (modulate ? 2 : 0), whole);
}

int64_t layer_norm_grad_bytes(const KernelSignature& s) {
  const Shape& x = s.inputs[1].shape;
  return cuda::token_norm_workspace({1, x.num_rows(), x[-1], 1}, 0, s.attrs.flag("affine") ? 2 : 0);
}

int64_t qk_norm_rope_grad_bytes(const KernelSignature& s) {
  const Shape& x = s.inputs[s.attrs.flag("two_grads") ? 2 : 1].shape;
  const int64_t normed = s.attrs.integer("normed"), parts = s.attrs.integer("parts");
  return cuda::qk_rows_workspace(x.num_rows(), normed,
                                 normed + (s.attrs.flag("bias_grad") ? parts : 0), x[2] / parts);
}

int64_t sum_rows_bytes(const KernelSignature& s) {
  const int64_t columns = s.outputs[0].shape.num_elements();
  return columns == 0
             ? 0
             : cuda::column_sums_workspace(s.inputs[0].shape.num_elements() / columns, columns);
}

int64_t attention_grad_bytes(const KernelSignature& s) {
  const Shape &lse = s.inputs[2].shape, &kv = s.inputs[4].shape;
  const int64_t batch_heads = lse[0] * lse[1];
  const int64_t parts = cuda::attention_parts(batch_heads, lse[2], kv[1]);
  return 4 * (cuda::attention_stats_numbers(batch_heads, lse[2]) +
              (parts > 1 ? parts * kv.num_elements() : 0));
}

int64_t conv3d_bytes(const KernelSignature& s) {
  if (!cuda::conv_on_tensor_cores(s.inputs[0].dtype, s.inputs[1].shape[0])) return 0;
  const cuda::ConvLayout layout = cuda::conv_layout(s);
  return layout.filter_bytes + layout.x_bytes;
}

struct Scratch {
  std::string_view op;
  int64_t (*bytes)(const KernelSignature&);
};
int64_t product_bytes(const KernelSignature&) { return cuda::kGemmWorkspace; }
constexpr Scratch kScratch[] = {
    {"attention_grad", attention_grad_bytes},
    {"block_attention",
     [](const KernelSignature& s) {
       if (!cuda::is_wide_attention(s)) return int64_t{0};
       return cuda::wide_attention_score_bytes(cuda::wide_attention_sizes(s)) + cuda::kGemmWorkspace;
     }},
    // Two numbers for each of lse's, [B, H, Lq].
    {"block_attention_grad", [](const KernelSignature& s) { return 2 * s.inputs[2].size_bytes(); }},
    {"conv3d", conv3d_bytes},
    {"gate_grad",
     [](const KernelSignature& s) {
       return cuda::token_norm_workspace(indexed(s.inputs[1].shape, s.inputs[2].shape), 1, 0);
     }},
    {"layer_norm_grad", layer_norm_grad_bytes},
    {"linear", product_bytes},
    {"linear_dgrad", product_bytes},
    {"linear_dgrad_gelu", product_bytes},
    {"linear_gelu", product_bytes},
    {"linear_wgrad", linear_wgrad_bytes},
    {"modulate_grad",
     [](const KernelSignature& s) {
       return cuda::token_norm_workspace(indexed(s.inputs[1].shape, s.inputs[2].shape), 2, 0);
     }},
    {"qk_norm_rope_grad", qk_norm_rope_grad_bytes},
    {"residual_norm_grad", residual_norm_grad_bytes},
    {"rms_norm_grad",
     [](const KernelSignature& s) {
       return cuda::qk_rows_workspace(s.inputs[1].shape.num_rows(), 1, 1, s.inputs[1].shape[-1]);
     }},
    {"sum_rows", sum_rows_bytes},
    {"sum_squares", [](const KernelSignature&) { return cuda::sum_squares_workspace(); }},
    {"weighted_mse",
     [](const KernelSignature& s) {
       return cuda::weighted_mse_workspace(s.inputs[0].shape[0] * s.inputs[0].shape[1]);
     }},
};

}  // namespace

bool has_cuda_kernel(std::string_view op) {
  const auto found = std::ranges::lower_bound(kOps, op, {}, &ListedOp::name);
  return found != std::end(kOps) && found->name == op && found->cuda;
}

int64_t cuda_workspace_bytes(std::string_view op, const KernelSignature& signature) {
  const auto found = std::ranges::lower_bound(kScratch, op, {}, &Scratch::op);
  return found != std::end(kScratch) && found->op == op ? found->bytes(signature) : 0;
}

}  // namespace wam
