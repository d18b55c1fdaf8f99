// Attention, forward and backward, against a dense masked softmax written in plain double loops.
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/reference/run_graph.h"
#include "wam/autodiff/gradients.h"
#include "wam/base/error.h"
#include "wam/ops/attention.h"
#include "wam/ops/block_attention.h"
#include "wam/ops/mul.h"
#include "wam/ops/sum_rows.h"

namespace wam {
namespace {

using reference::normals;
using reference::relative;
using reference::same_bits;
using reference::Tensors;

// float: sums of a few hundred products of unit normals round to about 1e-7 of their norm.
constexpr double kFloatBound = 2e-6;
constexpr double kDoubleBound = 1e-13;

struct Sizes {
  int64_t batch, queries, keys, heads, d;
  int64_t width() const { return heads * d; }
};

// bias(b, h, q, k): what is added to a scaled score, -inf for a pair that is masked.
using Bias = std::function<double(int64_t, int64_t, int64_t, int64_t)>;

struct Dense {
  HostTensor out, lse, dq, dk, dv;  // f64; [B, L, D], lse [B, H, Lq]
};

// All from q [B, Lq, D], k, v [B, Lk, D] and the gradient dout of out.
Dense dense_attention(const Sizes& z, double scale, const HostTensor& q, const HostTensor& k,
                      const HostTensor& v, const HostTensor& dout, const Bias& bias) {
  const Shape qs{z.batch, z.queries, z.width()}, ks{z.batch, z.keys, z.width()};
  Dense r{HostTensor::zeros(DType::kF64, qs),
          HostTensor::zeros(DType::kF64, Shape{z.batch, z.heads, z.queries}),
          HostTensor::zeros(DType::kF64, qs), HostTensor::zeros(DType::kF64, ks),
          HostTensor::zeros(DType::kF64, ks)};
  const auto at = [&](const HostTensor& x, int64_t rows, int64_t b, int64_t row, int64_t h) {
    return const_cast<double*>(x.as<double>().data()) + (b * rows + row) * z.width() + h * z.d;
  };
  const auto dot = [&](const double* x, const double* y) {
    double sum = 0;
    for (int64_t c = 0; c < z.d; ++c) sum += x[c] * y[c];
    return sum;
  };
  std::vector<double> p(static_cast<size_t>(z.keys)), dp(p.size());
  for (int64_t b = 0; b < z.batch; ++b) {
    for (int64_t h = 0; h < z.heads; ++h) {
      for (int64_t i = 0; i < z.queries; ++i) {
        const double *qi = at(q, z.queries, b, i, h), *g = at(dout, z.queries, b, i, h);
        double largest = -std::numeric_limits<double>::infinity(), total = 0, mean = 0;
        for (int64_t j = 0; j < z.keys; ++j) {
          p[static_cast<size_t>(j)] = scale * dot(qi, at(k, z.keys, b, j, h)) + bias(b, h, i, j);
          largest = std::max(largest, p[static_cast<size_t>(j)]);
        }
        for (double& x : p) total += x = std::exp(x - largest);
        r.lse.as<double>()[static_cast<size_t>((b * z.heads + h) * z.queries + i)] =
            largest + std::log(total);
        for (int64_t j = 0; j < z.keys; ++j) {
          double& pj = p[static_cast<size_t>(j)];
          pj /= total;
          dp[static_cast<size_t>(j)] = dot(g, at(v, z.keys, b, j, h));
          mean += pj * dp[static_cast<size_t>(j)];
          for (int64_t c = 0; c < z.d; ++c) {
            at(r.out, z.queries, b, i, h)[c] += pj * at(v, z.keys, b, j, h)[c];
            at(r.dv, z.keys, b, j, h)[c] += pj * g[c];
          }
        }
        for (int64_t j = 0; j < z.keys; ++j) {
          const double ds = scale * p[static_cast<size_t>(j)] * (dp[static_cast<size_t>(j)] - mean);
          for (int64_t c = 0; c < z.d; ++c) {
            at(r.dq, z.queries, b, i, h)[c] += ds * at(k, z.keys, b, j, h)[c];
            at(r.dk, z.keys, b, j, h)[c] += ds * qi[c];
          }
        }
      }
    }
  }
  return r;
}

// [B, L, D] tensors side by side along the last dim.
HostTensor side_by_side(const std::vector<HostTensor>& parts) {
  const int64_t rows = parts[0].shape().num_rows(), width = parts[0].shape()[-1];
  const auto count = static_cast<int64_t>(parts.size());
  HostTensor out(DType::kF64, Shape{parts[0].shape()[0], parts[0].shape()[1], count * width});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(parts[static_cast<size_t>(i)].as<double>().data() + row * width, width,
                  out.as<double>().data() + (row * count + i) * width);
    }
  }
  return out;
}

// sum(out * dout) has gradient dout at out.
ValueId loss_of(Builder& b, ValueId out, ValueId dout) {
  return sum_rows(b, mul(b, out, dout), Shape{});
}

Tensors run_block(const HostTensor& qkv, const HostTensor& dout, int64_t heads, double scale,
                  const std::vector<AttentionRect>& rects, int threads = 0) {
  return reference::run_graph(
      {{"qkv", qkv}, {"dout", dout}},
      [&](Builder& b, reference::Values& in) {
        const AttentionResult r = block_attention(b, in["qkv"], heads, scale, rects);
        const ValueId wrt[] = {in["qkv"]};
        b.graph().add_output("out", r.out);
        b.graph().add_output("lse", r.lse);
        b.graph().add_output("dqkv", gradients(b, loss_of(b, r.out, in["dout"]), wrt)[0]);
      },
      threads);
}

void check_block(const Sizes& z, const std::vector<AttentionRect>& rects) {
  const Shape shape{z.batch, z.queries, z.width()};
  const HostTensor q = normals(shape, 1), k = normals(shape, 2), v = normals(shape, 3);
  const HostTensor dout = normals(shape, 4), qkv = side_by_side({q, k, v});
  const double scale = 1 / std::sqrt(static_cast<double>(z.d));
  const auto allowed = [&](int64_t i, int64_t j) {
    for (const AttentionRect& rect : rects) {
      if (i < rect.q_begin || i >= rect.q_end) continue;
      for (const KeyRange& range : rect.keys) {
        if (j >= range.begin && j < range.end) return true;
      }
    }
    return false;
  };
  const Dense want =
      dense_attention(z, scale, q, k, v, dout, [&](int64_t, int64_t, int64_t i, int64_t j) {
        return allowed(i, j) ? 0 : -std::numeric_limits<double>::infinity();
      });
  const HostTensor want_grad = side_by_side({want.dq, want.dk, want.dv});
  for (const DType dtype : {DType::kF64, DType::kF32}) {
    const double bound = dtype == DType::kF64 ? kDoubleBound : kFloatBound;
    const Tensors got = run_block(qkv.to(dtype), dout.to(dtype), z.heads, scale, rects);
    EXPECT_LE(relative(got.at("out"), want.out), bound);
    EXPECT_LE(relative(got.at("lse"), want.lse), bound);
    EXPECT_LE(relative(got.at("dqkv"), want_grad), bound);
  }
}

// The training step's pattern: clean frames and blocks, noisy ones, actions, states.
std::vector<AttentionRect> training_rects(int64_t blocks, int64_t s, int64_t a) {
  const int64_t n = (2 * blocks + 1) * s, actions = 2 * n, states = actions + blocks * a;
  std::vector<AttentionRect> rects = {{0, s, {{0, s}}}};
  for (int64_t i = 0; i < blocks; ++i)
    rects.push_back({s + 2 * i * s, s + 2 * (i + 1) * s, {{0, s + 2 * (i + 1) * s}}});
  rects.push_back({n, n + s, {{n, n + s}}});
  const auto keys = [&](int64_t i) {
    const int64_t noisy = n + s + 2 * i * s, action = actions + i * a;
    return std::vector<KeyRange>{{0, s + 2 * i * s},
                                 {noisy, noisy + 2 * s},
                                 {action, action + a},
                                 {states + i, states + i + 1}};
  };
  for (int64_t i = 0; i < blocks; ++i) {
    rects.push_back({n + s + 2 * i * s, n + s + 2 * (i + 1) * s, keys(i)});
  }
  for (int64_t i = 0; i < blocks; ++i)
    rects.push_back({actions + i * a, actions + (i + 1) * a, keys(i)});
  for (int64_t i = 0; i < blocks; ++i)
    rects.push_back({states + i, states + i + 1, {{states + i, states + i + 1}}});
  return rects;
}

TEST(BlockAttention, MatchesDenseMaskedAttention) {
  // Tiles of 64 queries and 256 keys: below, at and above their sizes.
  for (const int64_t n : {1, 2, 31, 63, 64, 65, 255, 256, 257, 300}) {
    SCOPED_TRACE(n);
    check_block({1, n, n, 2, 8}, {{0, n, {{0, n}}}});
  }
  check_block({2, 5, 5, 3, 4}, {{0, 1, {{4, 5}}}, {1, 2, {{0, 1}, {2, 3}}}, {2, 5, {{1, 5}}}});
  check_block({2, 20, 20, 1, 33}, {{0, 7, {{0, 1}, {9, 20}}}, {7, 20, {{3, 4}}}});
}

TEST(BlockAttention, MatchesDenseAttentionOnTheTrainingPattern) {
  for (const auto& [blocks, s, a] : {std::tuple{2, 6, 3}, std::tuple{3, 50, 24}}) {
    const int64_t length = 2 * (2 * blocks + 1) * s + blocks * (a + 1);
    check_block({1, length, length, 2, 16}, training_rects(blocks, s, a));
  }
}

TEST(BlockAttention, BitsDoNotDependOnThreads) {
  const std::vector<AttentionRect> rects = training_rects(3, 30, 8);
  const int64_t length = rects.back().q_end;
  const HostTensor qkv = normals(Shape{2, length, 3 * 3 * 16}, 5, DType::kF32);
  const HostTensor dout = normals(Shape{2, length, 3 * 16}, 6, DType::kF32);
  const Tensors one = run_block(qkv, dout, 3, 0.25, rects, 1),
                two = run_block(qkv, dout, 3, 0.25, rects, 2);
  for (const char* name : {"out", "lse", "dqkv"})
    EXPECT_TRUE(same_bits(one.at(name), two.at(name))) << name;
}

TEST(BlockAttention, LargeScoresStayFinite) {
  HostTensor qkv = normals(Shape{1, 40, 3 * 8}, 7, DType::kF32);
  for (float& x : qkv.as<float>()) x *= 100;
  const HostTensor dout = normals(Shape{1, 40, 8}, 8, DType::kF32);
  for (const auto& [name, tensor] : run_block(qkv, dout, 1, 1, {{0, 40, {{0, 40}}}})) {
    for (const float x : tensor.as<float>()) ASSERT_TRUE(std::isfinite(x)) << name;
  }
}

struct Biases {
  bool key = false, key_batched = false, pair = false;
};

void check_attention(const Sizes& z, double scale, const Biases& with) {
  const Shape qs{z.batch, z.queries, z.width()}, ks{z.batch, z.keys, z.width()};
  const HostTensor q = normals(qs, 1), k = normals(ks, 2), v = normals(ks, 3),
                   dout = normals(qs, 4);
  HostTensor key = normals(with.key_batched ? Shape{z.batch, z.keys} : Shape{z.keys}, 5);
  HostTensor pair = normals(Shape{z.heads, z.queries, z.keys}, 6);
  // A masked stretch longer than a tile of keys, and single masked pairs; key 0 stays.
  for (int64_t i = 1; i < key.num_elements(); ++i) {
    if (i % z.keys != 0 && (i % z.keys < z.keys * 2 / 3)) {
      key.as<double>()[static_cast<size_t>(i)] = -std::numeric_limits<double>::infinity();
    }
  }
  for (int64_t i = 0; i < pair.num_elements(); ++i) {
    if (i % z.keys != 0 && i % 7 == 0) {
      pair.as<double>()[static_cast<size_t>(i)] = -std::numeric_limits<double>::infinity();
    }
  }
  const auto bias = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    double sum = 0;
    if (with.key)
      sum += key.as<double>()[static_cast<size_t>((with.key_batched ? b * z.keys : 0) + j)];
    if (with.pair) sum += pair.as<double>()[static_cast<size_t>((h * z.queries + i) * z.keys + j)];
    return sum;
  };
  const Dense want = dense_attention(z, scale, q, k, v, dout, bias);
  const HostTensor want_dkv = side_by_side({want.dk, want.dv});
  for (const DType dtype : {DType::kF64, DType::kF32}) {
    const double bound = dtype == DType::kF64 ? kDoubleBound : kFloatBound;
    Tensors inputs = {
        {"q", q.to(dtype)}, {"kv", side_by_side({k, v}).to(dtype)}, {"dout", dout.to(dtype)}};
    if (with.key) inputs["key"] = key.to(dtype);
    if (with.pair) inputs["pair"] = pair.to(dtype);
    const auto run = [&](int threads) {
      return reference::run_graph(
          inputs,
          [&](Builder& b, reference::Values& in) {
            Attention options{.heads = z.heads, .scale = scale};
            if (with.key) options.key_bias = in["key"];
            if (with.pair) options.pair_bias = in["pair"];
            const AttentionResult r = attention(b, in["q"], in["kv"], options);
            const ValueId wrt[] = {in["q"], in["kv"]};
            const std::vector<ValueId> grads = gradients(b, loss_of(b, r.out, in["dout"]), wrt);
            b.graph().add_output("out", r.out);
            b.graph().add_output("lse", r.lse);
            b.graph().add_output("dq", grads[0]);
            b.graph().add_output("dkv", grads[1]);
          },
          threads);
    };
    const Tensors got = run(1);
    EXPECT_LE(relative(got.at("out"), want.out), bound);
    EXPECT_LE(relative(got.at("lse"), want.lse), bound);
    // With a single unmasked key dq is 0: its rounding is that of the terms that cancel.
    EXPECT_LE(reference::difference(got.at("dq"), want.dq),
              bound * std::max(reference::norm(want.dq), reference::norm(want_dkv)));
    EXPECT_LE(relative(got.at("dkv"), want_dkv), bound);
    const Tensors two = run(2);
    for (const auto& [name, tensor] : got) EXPECT_TRUE(same_bits(tensor, two.at(name))) << name;
  }
}

TEST(Attention, MatchesDenseAttention) {
  for (const auto& [queries, keys] :
       {std::pair{1, 1}, {1, 300}, {5, 2}, {64, 256}, {65, 257}, {70, 600}}) {
    for (const Biases& with :
         {Biases{}, Biases{.key = true}, Biases{.key = true, .key_batched = true},
          Biases{.pair = true}, Biases{true, true, true}}) {
      SCOPED_TRACE(testing::Message() << queries << " x " << keys << " bias " << with.key
                                      << with.key_batched << with.pair);
      check_attention({2, queries, keys, 2, 8}, 0.4, with);
    }
  }
}

TEST(Attention, BadShapesAreRefused) {
  const HostTensor q = normals(Shape{1, 3, 8}, 1), kv = normals(Shape{1, 4, 16}, 2);
  const HostTensor bias = normals(Shape{3}, 3);
  const Tensors inputs = {{"q", q}, {"kv", kv}, {"bias", bias}};
  const auto with = [&](const Attention& options, bool biased) {
    reference::run_graph(inputs, [&](Builder& b, reference::Values& in) {
      Attention o = options;
      if (biased) o.key_bias = in["bias"];
      b.graph().add_output("out", attention(b, in["q"], in["kv"], o).out);
    });
  };
  EXPECT_THROW(with({.heads = 3}, false), GraphError);
  EXPECT_THROW(with({.heads = 0}, false), GraphError);
  EXPECT_THROW(with({.heads = 2}, true), GraphError);
}

TEST(BlockAttention, BadRectanglesAreRefused) {
  const std::vector<std::vector<AttentionRect>> bad = {
      {},                                    // covers nothing
      {{0, 3, {{0, 4}}}},                    // query 3 missing
      {{0, 4, {}}},                          // no keys
      {{0, 4, {{0, 5}}}},                    // key past the end
      {{0, 4, {{2, 3}, {1, 2}}}},            // keys out of order
      {{0, 4, {{0, 2}, {1, 3}}}},            // keys overlap
      {{0, 2, {{0, 4}}}, {1, 4, {{0, 4}}}},  // queries overlap
      {{0, 4, {{-1, 2}}}},
  };
  for (const auto& rects : bad) EXPECT_THROW(check_rects(rects, 4), GraphError);
  const std::vector<AttentionRect> good = training_rects(2, 3, 2);
  EXPECT_EQ(parse_rects(flatten(good), good.back().q_end), good);
  std::vector<int64_t> cut = flatten(good);
  cut.pop_back();
  EXPECT_THROW(parse_rects(cut, good.back().q_end), GraphError);
}

}  // namespace
}  // namespace wam
