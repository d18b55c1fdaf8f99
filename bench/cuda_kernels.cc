// Times the CUDA kernels at the models' sizes beside their floors (bytes over copy bandwidth,
// products over the rate of large ones), and checks the tensor-core attention against the plain
// kernels at full size. usage: cuda_kernels [check] [norms] [5b] [14b] [products] (all when none is
// named)
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/kernels/cuda/attention.h"
#include "wam/kernels/cuda/gemm.h"
#include "wam/kernels/cuda/support.h"
#include "wam/kernels/cuda/workspace.h"
#include "wam/ops/op_list.h"

namespace wam {
namespace {

using cuda::check;

constexpr double kBytesPerUs = 4.30e6, kFlopsPerUs = 690e6;  // measured, docs/performance.md
cudaStream_t g_stream;

struct Memory {
  explicit Memory(int64_t bytes) : bytes(bytes) {
    check(cudaMalloc(&data, static_cast<size_t>(std::max<int64_t>(bytes, 256))), "cudaMalloc");
  }
  ~Memory() { cudaFree(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  int64_t bytes;
  void* data = nullptr;
};
using Buffer = std::shared_ptr<Memory>;

double median_us(const std::function<void()>& run, int inner) {
  constexpr size_t kRepeats = 7;
  cudaEvent_t events[kRepeats + 1];
  for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "cudaEventCreate");
  run();
  check(cudaEventRecord(events[0], g_stream), "cudaEventRecord");
  for (size_t i = 0; i < kRepeats; ++i) {
    for (int k = 0; k < inner; ++k) run();
    check(cudaEventRecord(events[i + 1], g_stream), "cudaEventRecord");
  }
  check(cudaStreamSynchronize(g_stream), "timing");
  std::vector<double> times;
  for (size_t i = 0; i < kRepeats; ++i) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, events[i], events[i + 1]), "cudaEventElapsedTime");
    times.push_back(1e3 * static_cast<double>(ms) / inner);
  }
  for (const cudaEvent_t event : events) cudaEventDestroy(event);
  std::ranges::sort(times);
  return times[kRepeats / 2];
}

// An op bound to random operands.
class Bound {
 public:
  // `index` goes into every i32 input.
  Bound(const OpDef& op, Attrs attrs, std::vector<TensorType> inputs,
        const std::vector<int32_t>& index)
      : op_(op), attrs_(std::move(attrs)), in_types_(std::move(inputs)) {
    out_types_ = op.infer({in_types_, attrs_});
    const KernelSignature signature{in_types_, out_types_, attrs_};
    for (const TensorType& type : in_types_) in_.push_back(filled(type, index));
    for (const TensorType& type : out_types_)
      out_.push_back(std::make_shared<Memory>(type.size_bytes()));
    workspace_ = std::make_shared<Memory>(cuda_workspace_bytes(op.name, signature));
    kernel_ = find_cuda_kernel(op.name)->create(signature);
    for (const Buffer& buffer : in_) in_pointers_.push_back(buffer->data);
    for (const Buffer& buffer : out_) out_pointers_.push_back(buffer->data);
  }
  // Output `output` in the memory of input `input`.
  void in_place(size_t output, size_t input) { out_pointers_[output] = in_[input]->data; }
  void run() { kernel_->run({in_pointers_, out_pointers_, workspace_->data, g_stream}); }
  Kernel& kernel() { return *kernel_; }
  OpCost cost() const { return cost_of(op_, {in_types_, attrs_}, out_types_); }

 private:
  static Buffer filled(const TensorType& type, const std::vector<int32_t>& index) {
    auto buffer = std::make_shared<Memory>(type.size_bytes());
    if (type.dtype == DType::kI32) {
      WAM_CHECK(static_cast<int64_t>(index.size()) == type.shape.num_elements());
      check(cudaMemcpy(buffer->data, index.data(), index.size() * 4, cudaMemcpyHostToDevice),
            "index");
    } else if (type == TensorType{DType::kF32, Shape{8}}) {  // AdamW's scalars: a usual step
      const float scalars[8] = {1e-5f, 0.5f, 0.1f, 0.9f, 0, 1e-5f, 0, 0};
      check(cudaMemcpy(buffer->data, scalars, sizeof scalars, cudaMemcpyHostToDevice), "scalars");
    } else {
      cuda::fill_for_timing(buffer->data, type.size_bytes(), g_stream);
    }
    return buffer;
  }
  const OpDef& op_;
  Attrs attrs_;
  std::vector<TensorType> in_types_, out_types_;
  std::vector<Buffer> in_, out_;
  Buffer workspace_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<const void*> in_pointers_;
  std::vector<void*> out_pointers_;
};

void report(const std::string& what, Bound& bound, int inner = 10) {
  const double us = median_us([&] { bound.run(); }, inner);
  const OpCost cost = bound.cost();
  const double bytes = cost.bytes / kBytesPerUs, flops = cost.flops / kFlopsPerUs;
  const double floor = std::max(bytes, flops);
  fmt::print("{:44} {:9.1f} us, floor {:8.1f} us ({}), {:5.1f} %, {:6.1f} TFLOP/s, {:5.2f} TB/s\n",
             what, us, floor, bytes > flops ? "bytes" : "flops", 100 * floor / us,
             cost.flops / us * 1e-6, cost.bytes / us * 1e-6);
  std::fflush(stdout);
}

// The training sequence: frames of `s` tokens, `blocks` blocks of two frames with `a` actions and
// one state each.
struct Sequence {
  int64_t length = 0, rows = 0;
  std::vector<AttentionRect> rects;
  std::vector<int32_t> index;  // timestep row of each token
};
Sequence make_sequence(int64_t s, int64_t blocks, int64_t a) {
  Sequence z;
  const auto push = [&](int64_t count, int64_t row) {
    z.index.insert(z.index.end(), static_cast<size_t>(count), static_cast<int32_t>(row));
    z.length += count;
  };
  z.rects.push_back({0, s, {{0, s}}});
  for (int64_t i = 0; i < blocks; ++i) {
    z.rects.push_back({(1 + 2 * i) * s, (3 + 2 * i) * s, {{0, (3 + 2 * i) * s}}});
  }
  push((2 * blocks + 1) * s, 0);
  z.rects.push_back({z.length, z.length + s, {{z.length, z.length + s}}});
  push(s, 1);
  z.rows = 2;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t begin = z.length;
    push(s, z.rows);
    push(s, z.rows + 1);
    push(a, z.rows + 2);
    push(1, z.rows + 2);
    z.rows += 3;
    z.rects.push_back({begin, z.length - 1, {{0, (1 + 2 * i) * s}, {begin, z.length}}});
    z.rects.push_back({z.length - 1, z.length, {{z.length - 1, z.length}}});
  }
  return z;
}

struct Model {
  const char* name;
  int64_t batch, width, heads, ffn;
  Sequence sequence;
  std::vector<int64_t> context;
};

TensorType bf16(std::initializer_list<int64_t> dims) { return {DType::kBF16, Shape(dims)}; }
TensorType f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

void time_norms(const Model& m) {
  const Sequence& z = m.sequence;
  const TensorType x = bf16({m.batch, z.length, m.width}), table = f32({m.batch, z.rows, m.width});
  const TensorType index{DType::kI32, Shape{z.length}}, w = bf16({m.width});
  const TensorType stats = f32({m.batch * z.length, 2});
  const Attrs modulate{
      {"eps", 1e-6}, {"residual", std::string("gate")}, {"norm", std::string("modulate")}};
  Attrs modulate_grad = modulate;
  modulate_grad.set("dx_out", true);
  const Attrs affine{
      {"eps", 1e-6}, {"residual", std::string("gate")}, {"norm", std::string("affine")}};
  Attrs affine_grad = affine;
  affine_grad.set("dx_out", true);
  const auto time = [&](const char* label, const OpDef& op, const Attrs& attrs,
                        std::vector<TensorType> in, bool in_place = false) {
    Bound bound(op, attrs, std::move(in), z.index);
    if (in_place) bound.in_place(0, 0);
    report(std::string(m.name) + " " + label, bound);
  };
  Attrs add_grad = modulate_grad;
  add_grad.set("residual", std::string("add"));
  time("residual_norm gate modulate", residual_norm_op, modulate,
       {x, x, table, table, table, index});
  time("residual_norm gate affine", residual_norm_op, affine, {x, x, table, w, w, index});
  time("residual_norm_grad gate modulate", residual_norm_grad_op, modulate_grad,
       {x, x, x, stats, x, table, table, index});
  time("residual_norm_grad gate affine", residual_norm_grad_op, affine_grad,
       {x, x, x, stats, x, table, w, index});
  time("residual_norm_grad add modulate", residual_norm_grad_op, add_grad,
       {x, x, x, stats, table, index});
  const TensorType qkv = bf16({m.batch, z.length, 3 * m.width});
  const TensorType rope = f32({z.length, m.width / m.heads / 2, 2});
  const Attrs qk{{"parts", int64_t{3}},
                 {"normed", int64_t{2}},
                 {"rope", true},
                 {"eps", 1e-6},
                 {"heads", m.heads}};
  time("qk_norm_rope", qk_norm_rope_op, qk, {qkv, w, w, rope});
  time("qk_norm_rope_grad", qk_norm_rope_grad_op, qk, {qkv, qkv, w, w, rope});
  time("qk_norm_rope_grad in place", qk_norm_rope_grad_op, qk, {qkv, qkv, w, w, rope}, true);
  const Attrs q{{"parts", int64_t{1}},
                {"normed", int64_t{1}},
                {"rope", false},
                {"eps", 1e-6},
                {"heads", m.heads}};
  time("qk_norm of cross q", qk_norm_rope_op, q, {x, w});
  time("qk_norm_grad of cross q", qk_norm_rope_grad_op, q, {x, x, w}, true);
  const TensorType wide = bf16({m.batch, z.length, m.ffn});
  time("gelu_tanh", gelu_tanh_op, {}, {wide});
  time("sum_rows of the wide layer", sum_rows_op, {{"suffix", std::vector<int64_t>{m.ffn}}},
       {wide});
  time("add", add_op, {}, {x, x});
}

void time_attention(const Model& m) {
  const Sequence& z = m.sequence;
  const double scale = 1 / std::sqrt(static_cast<double>(m.width / m.heads));
  const TensorType o = bf16({m.batch, z.length, m.width}), lse = f32({m.batch, m.heads, z.length});
  const TensorType qkv = bf16({m.batch, z.length, 3 * m.width});
  const Attrs rects{{"heads", m.heads}, {"scale", scale}, {"rects", flatten(z.rects)}};
  {
    Bound forward(block_attention_op, rects, {qkv}, {});
    report(std::string(m.name) + " block_attention", forward, 3);
    Bound backward(block_attention_grad_op, rects, {o, o, lse, qkv}, {});
    report(std::string(m.name) + " block_attention_grad", backward, 3);
  }
  for (const int64_t keys : m.context) {
    const TensorType kv = bf16({m.batch, keys, 2 * m.width});
    const Attrs attrs{
        {"heads", m.heads}, {"scale", scale}, {"key_bias", false}, {"pair_bias", false}};
    Bound forward(attention_op, attrs, {o, kv}, {});
    report(fmt::format("{} attention over {} keys", m.name, keys), forward, 3);
    Bound backward(attention_grad_op, attrs, {o, o, lse, o, kv}, {});
    report(fmt::format("{} attention_grad over {} keys", m.name, keys), backward, 3);
  }
}

void time_optimizer() {
  const int64_t n = 190'000'000 / 4096 * 4096;
  const Attrs attrs{{"beta1", 0.95}, {"beta2", 0.999}, {"eps", 1e-8}};
  Bound split(
      adamw_split_op, attrs,
      {{DType::kBF16, Shape{n}}, {DType::kI16, Shape{n}}, f32({n}), f32({n}), f32({n}), f32({8})},
      {});
  for (size_t i = 0; i < 4; ++i) split.in_place(i, i);
  report("adamw_split, 190M parameters", split, 3);
  Bound norm(sum_squares_op, {}, {f32({n})}, {});
  report("sum_squares, 190M", norm, 3);
}

// The first choice and the tuned one in turns, each with a cold cache: medians, and in how many of
// the rounds the tuned one won.
void time_product(const std::string& what, const std::function<std::unique_ptr<Bound>()>& make) {
  static const Memory scratch(int64_t{5} << 30), flushed(int64_t{128} << 20);
  constexpr int kRounds = 25;
  const auto first = make();
  const auto tuned = make();
  auto* tunable = dynamic_cast<cuda::Tunable*>(&tuned->kernel());
  if (!tunable->tune(scratch.data, scratch.bytes, g_stream)) fmt::print("no room to tune\n");
  std::vector<double> times[2];
  int wins = 0;
  cudaEvent_t events[2];
  for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "cudaEventCreate");
  for (int round = 0; round < kRounds; ++round) {
    for (int which = 0; which < 2; ++which) {
      check(cudaMemsetAsync(flushed.data, round, static_cast<size_t>(flushed.bytes), g_stream),
            "emptying the cache");
      check(cudaEventRecord(events[0], g_stream), "cudaEventRecord");
      (which == 0 ? first : tuned)->run();
      check(cudaEventRecord(events[1], g_stream), "cudaEventRecord");
      check(cudaEventSynchronize(events[1]), "timing");
      float ms = 0;
      check(cudaEventElapsedTime(&ms, events[0], events[1]), "cudaEventElapsedTime");
      times[which].push_back(1e3 * static_cast<double>(ms));
    }
    wins += times[1].back() < times[0].back() ? 1 : 0;
  }
  for (const cudaEvent_t event : events) cudaEventDestroy(event);
  for (auto& list : times) std::ranges::sort(list);
  const double a = times[0][kRounds / 2], b = times[1][kRounds / 2], flops = first->cost().flops;
  const cuda::Gemm& product = tunable->product();
  fmt::print(
      "{:36} first {:8.1f} us {:6.1f} TFLOP/s, tuned (place {:2}) {:8.1f} us {:6.1f} TFLOP/s, won "
      "{:2} of {}; tuner saw {:.1f} and {:.1f}\n",
      what, a, flops / a * 1e-6, product.best_place(), b, flops / b * 1e-6, wins, kRounds,
      product.first_us(), product.best_us());
  std::fflush(stdout);
}

void time_products(const Model& m) {
  const int64_t rows = m.batch * m.sequence.length;
  struct Layer {
    std::string name;
    int64_t rows, n, k;
  };
  std::vector<Layer> layers = {{"qkv", rows, 3 * m.width, m.width},
                               {"proj", rows, m.width, m.width},
                               {"up", rows, m.ffn, m.width},
                               {"down", rows, m.width, m.ffn}};
  for (const int64_t keys : m.context) {
    layers.push_back({fmt::format("kv of {}", keys), m.batch * keys, 2 * m.width, m.width});
  }
  const Attrs plain{{"kn", false}};
  const Attrs whole{{"kn", false}, {"bias", false}, {"dtype", std::string("f32")}};
  Attrs added = whole;
  added.set("accumulate", true);
  for (const Layer& l : layers) {
    const TensorType x = bf16({l.rows, l.k}), y = bf16({l.rows, l.n}), w = bf16({l.n, l.k});
    const bool up = l.n == m.ffn, down = l.k == m.ffn;
    const std::string label = fmt::format("{} {}", m.name, l.name);
    const auto bound = [](const OpDef& op, const Attrs& attrs, std::vector<TensorType> in) {
      return [&op, attrs, in] {
        return std::make_unique<Bound>(op, attrs, in, std::vector<int32_t>{});
      };
    };
    time_product(label, bound(linear_op, plain, {x, w, bf16({l.n})}));
    if (up) time_product(label + " + gelu", bound(linear_gelu_op, plain, {x, w, bf16({l.n})}));
    time_product(label + " dgrad", bound(linear_dgrad_op, plain, {y, w}));
    if (down) time_product(label + " dgrad + gelu", bound(linear_dgrad_gelu_op, plain, {y, w, x}));
    time_product(label + " wgrad", bound(linear_wgrad_op, whole, {y, x}));
    time_product(label + " wgrad, added", [&] {
      auto made = bound(linear_wgrad_op, added, {y, x, f32({l.n, l.k})})();
      made->in_place(0, 2);
      return made;
    });
  }
}

// ---- tensor-core attention against the plain kernels ----

std::vector<float> download(const Memory& memory, DType dtype) {
  std::vector<float> values;
  if (dtype == DType::kF32) {
    values.resize(static_cast<size_t>(memory.bytes) / 4);
    check(cudaMemcpy(values.data(), memory.data, values.size() * 4, cudaMemcpyDeviceToHost),
          "download");
    return values;
  }
  std::vector<uint16_t> bits(static_cast<size_t>(memory.bytes) / 2);
  check(cudaMemcpy(bits.data(), memory.data, bits.size() * 2, cudaMemcpyDeviceToHost), "download");
  for (const uint16_t b : bits) values.push_back(bf16_to_float(b));
  return values;
}

bool close(const char* what, const Memory& got, const Memory& want, DType dtype) {
  const std::vector<float> a = download(got, dtype), b = download(want, dtype);
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  const double error = std::sqrt(difference / size);
  const bool right = error < 1e-2;  // bf16 operands; NaN is wrong
  fmt::print("  {:4} relative error {:.2e} {}\n", what, error, right ? "" : "WRONG");
  return right;
}

// Stretches draws of fill_for_timing, which are positive and near 1 in size, to something like
// normal.
bool check_attention(const char* label, int64_t batch, int64_t heads, int64_t d, int64_t queries,
                     int64_t keys, const std::vector<AttentionRect>& rects) {
  const int64_t width = heads * d;
  const auto make = [&](int64_t elements, int64_t bytes) {
    return std::make_shared<Memory>(elements * bytes);
  };
  const Buffer q = make(batch * queries * width, 2), kv = make(batch * keys * 2 * width, 2);
  const Buffer dout = make(batch * queries * width, 2);
  for (const Buffer& buffer : {q, kv, dout})
    cuda::fill_for_timing(buffer->data, buffer->bytes, g_stream);
  cuda::AttentionArgs args{.dtype = DType::kBF16,
                           .batch = batch,
                           .heads = heads,
                           .d = d,
                           .queries = queries,
                           .keys = keys,
                           .scale = static_cast<float>(2 / std::sqrt(static_cast<double>(d))),
                           .q = q->data,
                           .k = kv->data,
                           .v = static_cast<std::byte*>(kv->data) + 2 * width,
                           .q_row = width,
                           .q_batch = queries * width,
                           .kv_row = 2 * width,
                           .kv_batch = keys * 2 * width};
  if (rects.size() == 1) args.parts = cuda::attention_parts(batch * heads, queries, keys);
  const auto forward_tiles = cuda::AttentionTiles::for_forward(rects, args.dtype, d, true);
  const auto query_tiles = cuda::AttentionTiles::of_queries(rects);
  const auto key_tiles = cuda::AttentionTiles::of_keys(rects, keys, args.parts);
  const auto all_keys = cuda::AttentionTiles::of_keys(rects, keys);
  const Buffer partial = make(args.parts * batch * keys * 2 * width, 4);
  const Buffer stats = make(batch * heads * queries, 8);
  struct Results {
    Buffer out, lse, dq, dkv;
  };
  const auto run = [&](bool hopper) {
    const Results r{make(batch * queries * width, 2), make(batch * heads * queries, 4),
                    make(batch * queries * width, 2), make(batch * keys * 2 * width, 2)};
    for (const Buffer& buffer : {r.out, r.lse, r.dq, r.dkv}) {
      check(cudaMemsetAsync(buffer->data, 0xFF, static_cast<size_t>(buffer->bytes), g_stream),
            "poison");
    }
    args.out = r.out->data;
    args.lse = static_cast<float*>(r.lse->data);
    args.dout = dout->data;
    args.dq = r.dq->data;
    args.dk = r.dkv->data;
    args.dv = static_cast<std::byte*>(r.dkv->data) + 2 * width;
    args.stats = static_cast<float*>(stats->data);
    args.partial = static_cast<float*>(partial->data);
    if (hopper) {
      cuda::launch_hopper_attention(args, *forward_tiles, g_stream);
      cuda::launch_hopper_attention_grad(args, *query_tiles, *key_tiles, g_stream);
    } else {
      cuda::launch_plain_attention(args, *query_tiles, g_stream);
      cuda::launch_plain_attention_grad(args, *query_tiles, *all_keys, g_stream);
    }
    check(cudaStreamSynchronize(g_stream), label);
    return r;
  };
  fmt::print("{}\n", label);
  const Results plain = run(false), fast = run(true), again = run(true);
  bool right = close("out", *fast.out, *plain.out, DType::kBF16);
  right = close("lse", *fast.lse, *plain.lse, DType::kF32) && right;
  right = close("dq", *fast.dq, *plain.dq, DType::kBF16) && right;
  right = close("dkv", *fast.dkv, *plain.dkv, DType::kBF16) && right;
  for (const auto& [a, b] :
       {std::pair{fast.out, again.out}, {fast.dq, again.dq}, {fast.dkv, again.dkv}}) {
    if (download(*a, DType::kF32) != download(*b, DType::kF32))
      fmt::print("  other bits in a second run\n");
  }
  std::fflush(stdout);
  return right;
}

bool check_all(const Sequence& sequence) {
  bool right = check_attention("one full tile, d 64", 1, 1, 64, 128, 64, {{0, 128, {{0, 64}}}});
  right =
      check_attention("one full tile, d 128", 1, 1, 128, 128, 64, {{0, 128, {{0, 64}}}}) && right;
  right =
      check_attention("two key tiles, a rest", 1, 2, 128, 100, 92, {{0, 100, {{0, 92}}}}) && right;
  right = check_attention("d 80", 2, 2, 80, 257, 257, {{0, 257, {{0, 257}}}}) && right;
  right =
      check_attention("keys nobody reads", 1, 2, 128, 600, 300, {{0, 600, {{70, 200}}}}) && right;
  right = check_attention("wide tiles", 1, 2, 128, 2100, 500, {{0, 2100, {{0, 500}}}}) && right;
  right = check_attention("parts", 1, 2, 128, 968, 92, {{0, 968, {{0, 92}}}}) && right;
  right = check_attention("5B cross", 2, 3, 128, 968, 257, {{0, 968, {{0, 257}}}}) && right;
  const int64_t n = sequence.length;
  return check_attention("5B rectangles", 2, 3, 128, n, n, sequence.rects) && right;
}

int run(const std::function<bool(const char*)>& wants) {
  check(cudaStreamCreate(&g_stream), "cudaStreamCreate");
  const Model small{"5B x8", 8, 3072, 24, 14336, make_sequence(50, 4, 16), {92, 257, 513}};
  const Model large{"14B x1", 1, 5120, 40, 13824, make_sequence(880, 4, 24), {92, 257}};
  bool right = true;
  if (wants("check")) right = check_all(small.sequence);
  if (wants("norms")) {
    time_norms(small);
    time_norms(large);
  }
  if (wants("5b")) {
    time_norms(small);
    time_attention(small);
    time_optimizer();
  }
  if (wants("14b")) {
    time_norms(large);
    time_attention(large);
  }
  if (wants("products")) {
    time_products(small);
    time_products(large);
    fmt::print("{}", cuda::format_algorithms());
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace wam

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    fmt::print("SKIPPED: no GPU\n");
    return 0;
  }
  const auto wants = [&](const char* what) {
    return argc == 1 || std::any_of(argv + 1, argv + argc,
                                    [&](const char* arg) { return std::string(arg) == what; });
  };
  try {
    return wam::run(wants);
  } catch (const wam::Error& error) {
    fmt::print("{}\n", error.what());
    return error.exit_code();
  }
}
