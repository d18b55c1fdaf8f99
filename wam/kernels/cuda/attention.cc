#include "wam/kernels/cuda/attention.h"

#include "wam/kernels/cuda/support.h"
#include "wam/kernels/cuda/workspace.h"

namespace wam {
namespace {

// Where the biases are among the inputs, from `first` = the index of q on; -1: absent.
struct Biases {
  int key = -1, pair = -1;
  int64_t key_batch = 0;
};

struct Problem {
  cuda::AttentionArgs args;
  Biases biases;
  std::shared_ptr<cuda::AttentionTiles> queries, keys;
};

Problem problem_of(const KernelSignature& s, size_t first, bool gradient) {
  const Shape &q = s.inputs[first].shape, &kv = s.inputs[first + 1].shape;
  const int64_t heads = s.attrs.integer("heads"), width = q[2];
  Problem p;
  p.args = {.dtype = s.inputs[first].dtype,
            .batch = q[0],
            .heads = heads,
            .d = width / heads,
            .queries = q[1],
            .keys = kv[1],
            .scale = static_cast<float>(s.attrs.real("scale")),
            .q_row = width,
            .q_batch = q[1] * width,
            .kv_row = 2 * width,
            .kv_batch = kv[1] * 2 * width};
  int at = static_cast<int>(first) + 2;
  if (s.attrs.flag("key_bias")) {
    p.biases.key = at++;
    const Shape& bias = s.inputs[static_cast<size_t>(p.biases.key)].shape;
    p.biases.key_batch = bias.ndim() == 2 ? kv[1] : 0;
  }
  if (s.attrs.flag("pair_bias")) p.biases.pair = at;
  const std::vector<AttentionRect> whole = {{0, q[1], {{0, kv[1]}}}};
  const std::span<const AttentionRect> rects(whole.data(), q[1] > 0 ? 1 : 0);
  if (gradient) {
    p.queries = cuda::AttentionTiles::of_queries(rects);
    if (cuda::has_hopper_attention(p.args.dtype, p.args.d) && p.biases.pair < 0) {
      p.args.parts = cuda::attention_parts(p.args.batch * heads, q[1], kv[1]);
    }
    p.keys = cuda::AttentionTiles::of_keys(rects, kv[1], p.args.parts);
  } else {
    const bool plain_scores = p.biases.key < 0 && p.biases.pair < 0 && p.args.scale > 0;
    p.queries = cuda::AttentionTiles::for_forward(rects, p.args.dtype, p.args.d, plain_scores);
  }
  return p;
}

cuda::AttentionArgs filled(const Problem& p, const KernelIo& io, size_t first) {
  cuda::AttentionArgs args = p.args;
  const auto width = static_cast<size_t>(args.heads * args.d * size_bytes(args.dtype));
  args.q = io.inputs[first];
  args.k = io.inputs[first + 1];
  args.v = io.in<std::byte>(first + 1) + width;
  if (p.biases.key >= 0) args.key_bias = io.in<float>(static_cast<size_t>(p.biases.key));
  args.key_bias_batch = p.biases.key_batch;
  if (p.biases.pair >= 0) args.pair_bias = io.in<float>(static_cast<size_t>(p.biases.pair));
  return args;
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  return cuda::make_kernel([p = problem_of(s, 0, false)](const KernelIo& io) {
    cuda::AttentionArgs args = filled(p, io, 0);
    args.out = io.outputs[0];
    args.lse = io.out<float>(1);
    cuda::launch_attention(args, *p.queries, cuda::stream_of(io));
  });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  return cuda::make_kernel([p = problem_of(s, 3, true)](const KernelIo& io) {
    cuda::AttentionArgs args = filled(p, io, 3);
    args.dout = io.inputs[0];
    args.out = const_cast<void*>(io.inputs[1]);
    args.lse = const_cast<float*>(io.in<float>(2));
    args.dq = io.outputs[0];
    args.dk = io.outputs[1];
    args.dv = io.out<std::byte>(1) + args.heads * args.d * size_bytes(args.dtype);
    args.stats = static_cast<float*>(io.workspace);
    args.partial =
        args.stats + cuda::attention_stats_numbers(args.batch * args.heads, args.queries);
    cuda::launch_attention_grad(args, *p.queries, *p.keys, cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef attention_cuda, attention_grad_cuda;
const KernelDef attention_cuda = {.op = "attention", .create = create};
const KernelDef attention_grad_cuda = {.op = "attention_grad", .create = create_grad};

}  // namespace wam
