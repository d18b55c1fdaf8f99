#include "wam/kernels/cuda/attention.h"
#include "wam/kernels/cuda/attention_wide.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

struct Problem {
  cuda::AttentionArgs args;
  std::shared_ptr<cuda::AttentionTiles> queries, keys;
};

Problem problem_of(const KernelSignature& s, const TensorType& qkv, bool gradient) {
  const int64_t heads = s.attrs.integer("heads"), length = qkv.shape[1], row = qkv.shape[2];
  Problem p;
  p.args = {.dtype = qkv.dtype,
            .batch = qkv.shape[0],
            .heads = heads,
            .d = row / 3 / heads,
            .queries = length,
            .keys = length,
            .scale = static_cast<float>(s.attrs.real("scale")),
            .q_row = row,
            .q_batch = length * row,
            .kv_row = row,
            .kv_batch = length * row};
  const std::vector<AttentionRect> rects = parse_rects(s.attrs.integers("rects"), length);
  if (gradient) {
    p.queries = cuda::AttentionTiles::of_queries(rects);
    p.keys = cuda::AttentionTiles::of_keys(rects, length);
  } else {
    p.queries =
        cuda::AttentionTiles::for_forward(rects, p.args.dtype, p.args.d, p.args.scale > 0);
  }
  return p;
}

cuda::AttentionArgs filled(const Problem& p, const void* qkv) {
  cuda::AttentionArgs args = p.args;
  const int64_t width = args.heads * args.d * size_bytes(args.dtype);
  args.q = qkv;
  args.k = static_cast<const std::byte*>(qkv) + width;
  args.v = static_cast<const std::byte*>(qkv) + 2 * width;
  return args;
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  if (cuda::is_wide_attention(s)) {
    const auto wide = std::make_shared<const cuda::WideAttention>(
        cuda::wide_attention_sizes(s), static_cast<float>(s.attrs.real("scale")));
    return cuda::make_kernel([wide](const KernelIo& io) {
      wide->run(io.inputs[0], io.outputs[0], io.out<float>(1), io.workspace, cuda::stream_of(io));
    });
  }
  return cuda::make_kernel([p = problem_of(s, s.inputs[0], false)](const KernelIo& io) {
    cuda::AttentionArgs args = filled(p, io.inputs[0]);
    args.out = io.outputs[0];
    args.lse = io.out<float>(1);
    cuda::launch_attention(args, *p.queries, cuda::stream_of(io));
  });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  return cuda::make_kernel([p = problem_of(s, s.inputs[3], true)](const KernelIo& io) {
    cuda::AttentionArgs args = filled(p, io.inputs[3]);
    const int64_t width = args.heads * args.d * size_bytes(args.dtype);
    args.dout = io.inputs[0];
    args.out = const_cast<void*>(io.inputs[1]);
    args.lse = const_cast<float*>(io.in<float>(2));
    args.dq = io.outputs[0];
    args.dk = io.out<std::byte>(0) + width;
    args.dv = io.out<std::byte>(0) + 2 * width;
    args.stats = static_cast<float*>(io.workspace);
    cuda::launch_attention_grad(args, *p.queries, *p.keys, cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef block_attention_cuda, block_attention_grad_cuda;
const KernelDef block_attention_cuda = {.op = "block_attention", .create = create};
const KernelDef block_attention_grad_cuda = {.op = "block_attention_grad", .create = create_grad};

}  // namespace wam
