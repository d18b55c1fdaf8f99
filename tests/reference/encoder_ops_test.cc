// The frozen encoders' ops against plain double loops.
#include <cmath>

#include "tests/reference/run_graph.h"
#include "wam/base/error.h"
#include "wam/ops/channel_norm.h"
#include "wam/ops/conv3d.h"
#include "wam/ops/embedding.h"
#include "wam/ops/pixels_to_float.h"
#include "wam/ops/relative_bias.h"
#include "wam/ops/resize_image.h"
#include "wam/ops/upsample_nearest2x.h"

namespace wam {
namespace {

using reference::normals;
using reference::relative;
using reference::same_bits;
using reference::Tensors;
using reference::Values;

struct ConvCase {
  Shape x, w;
  Conv3d options;
};

HostTensor dense_conv(const ConvCase& c, const HostTensor& x, const HostTensor& w,
                      const HostTensor& b) {
  const Shape &xs = c.x, &ws = c.w;
  const auto& pad = c.options.pad;
  int64_t size[3];
  for (int i = 0; i < 3; ++i) {
    const auto k = static_cast<size_t>(i);
    size[i] = (xs[1 + i] + pad[2 * k] + pad[2 * k + 1] - ws[2 + i]) / c.options.stride[k] + 1;
  }
  HostTensor y(DType::kF64, Shape{xs[0], size[0], size[1], size[2], ws[0]});
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    int64_t rest = i, at[5];
    for (int d = 4; d >= 0; --d) {
      at[d] = rest % y.shape()[d];
      rest /= y.shape()[d];
    }
    double sum = b.as<double>()[static_cast<size_t>(at[4])];
    for (int64_t k = 0; k < ws[1] * ws[2] * ws[3] * ws[4]; ++k) {
      const int64_t tap[3] = {k / ws[4] / ws[3] % ws[2], k / ws[4] % ws[3], k % ws[4]};
      int64_t from[3];
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const auto p = static_cast<size_t>(d);
        from[d] = at[1 + d] * c.options.stride[p] - pad[2 * p] + tap[d];
        inside = inside && from[d] >= 0 && from[d] < xs[1 + d];
      }
      if (!inside) continue;
      const int64_t channel = k / (ws[2] * ws[3] * ws[4]);
      const int64_t source =
          (((at[0] * xs[1] + from[0]) * xs[2] + from[1]) * xs[3] + from[2]) * xs[4] + channel;
      sum += x.as<double>()[static_cast<size_t>(source)] *
             w.as<double>()[static_cast<size_t>(at[4] * ws[1] * ws[2] * ws[3] * ws[4] + k)];
    }
    y.as<double>()[static_cast<size_t>(i)] = sum;
  }
  return y;
}

HostTensor run_conv(const ConvCase& c, const Tensors& inputs, int threads) {
  return reference::run_graph(
             inputs,
             [&](Builder& b, Values& in) {
               b.graph().add_output("y", conv3d(b, in["x"], in["w"], in["b"], c.options));
             },
             threads)
      .at("y");
}

TEST(Conv3d, MatchesPlainLoops) {
  const Conv3d causal{.pad = {2, 0, 1, 1, 1, 1}};
  const Conv3d halved{.stride = {1, 2, 2}, .pad = {0, 0, 0, 1, 0, 1}};
  const ConvCase cases[] = {
      {Shape{2, 5, 6, 7, 3}, Shape{4, 3, 3, 3, 3}, causal},
      {Shape{1, 1, 4, 4, 5}, Shape{17, 5, 3, 3, 3}, causal},  // one frame: two taps are padding
      {Shape{1, 2, 9, 5, 32}, Shape{48, 32, 3, 3, 3}, causal},
      {Shape{2, 3, 8, 10, 16}, Shape{16, 16, 1, 3, 3}, halved},
      {Shape{1, 2, 7, 5, 4}, Shape{6, 4, 1, 3, 3}, halved},  // odd sides
      {Shape{1, 7, 3, 2, 8}, Shape{8, 8, 3, 1, 1}, {.stride = {2, 1, 1}}},
      {Shape{2, 4, 3, 3, 8}, Shape{16, 8, 3, 1, 1}, {.pad = {2, 0, 0, 0, 0, 0}}},
      {Shape{1, 4, 5, 5, 3},
       Shape{2, 3, 2, 2, 2},
       {.stride = {3, 2, 3}, .pad = {1, 1, 0, 1, 1, 0}}},
      {Shape{1, 1, 1, 1, 1}, Shape{1, 1, 1, 1, 1}, {}},
  };
  for (const ConvCase& c : cases) {
    SCOPED_TRACE(c.x.to_string() + " * " + c.w.to_string());
    const HostTensor x = normals(c.x, 1), w = normals(c.w, 2), b = normals(Shape{c.w[0]}, 3);
    const HostTensor want = dense_conv(c, x, w, b);
    EXPECT_LE(relative(run_conv(c, {{"x", x}, {"w", w}, {"b", b}}, 0), want), 1e-14);
    const Tensors narrow = {
        {"x", x.to(DType::kF32)}, {"w", w.to(DType::kF32)}, {"b", b.to(DType::kF32)}};
    const HostTensor one = run_conv(c, narrow, 1), two = run_conv(c, narrow, 2);
    EXPECT_EQ(one.shape(), want.shape());
    EXPECT_LE(relative(one, want), 1e-6);
    EXPECT_TRUE(same_bits(one, two));
  }
}

TEST(Conv3d, BadShapesAreRefused) {
  const auto with = [](const Shape& x, const Shape& w, const Conv3d& options) {
    run_conv({x, w, options},
             {{"x", normals(x, 1)}, {"w", normals(w, 2)}, {"b", normals(Shape{w[0]}, 3)}}, 0);
  };
  const Shape x{1, 2, 4, 4, 3};
  EXPECT_THROW(with(x, Shape{2, 4, 1, 1, 1}, {}), GraphError);  // channels
  EXPECT_THROW(with(x, Shape{2, 3, 3, 1, 1}, {}), GraphError);  // does not fit
  EXPECT_THROW(with(x, Shape{2, 3, 1, 1, 1}, {.stride = {0, 1, 1}}), GraphError);
  EXPECT_THROW(with(x, Shape{2, 3, 1, 1, 1}, {.pad = {1, 0, 0, 0, 0, 0}}), GraphError);
  EXPECT_THROW(with(x, Shape{2, 3, 1, 3, 3}, {.pad = {0, 0, -1, 0, 0, 0}}), GraphError);
}

TEST(ChannelNorm, MatchesTheFormula) {
  for (const int64_t channels : {1, 16, 33}) {
    const HostTensor gamma = normals(Shape{channels}, 2);
    HostTensor x = normals(Shape{2, 3, channels}, 1);
    for (int64_t c = 0; c < channels; ++c)
      x.as<double>()[static_cast<size_t>(c)] = 0;  // a zero row
    for (const bool silu : {false, true}) {
      HostTensor want(DType::kF64, x.shape());
      for (int64_t row = 0; row < 6; ++row) {
        double square = 0;
        for (int64_t c = 0; c < channels; ++c)
          square += std::pow(x.as<double>()[static_cast<size_t>(row * channels + c)], 2);
        for (int64_t c = 0; c < channels; ++c) {
          const auto at = static_cast<size_t>(row * channels + c);
          const double y = x.as<double>()[at] / std::max(std::sqrt(square), 1e-12) *
                           std::sqrt(static_cast<double>(channels)) *
                           gamma.as<double>()[static_cast<size_t>(c)];
          want.as<double>()[at] = silu ? y / (1 + std::exp(-y)) : y;
        }
      }
      for (const DType dtype : {DType::kF64, DType::kF32}) {
        const HostTensor got =
            reference::run_graph({{"x", x.to(dtype)}, {"g", gamma.to(dtype)}}, [&](Builder& b,
                                                                                   Values& in) {
              b.graph().add_output("y", channel_norm(b, in["x"], in["g"], silu));
            }).at("y");
        EXPECT_LE(relative(got, want), dtype == DType::kF64 ? 1e-15 * 4 : 3e-7);
      }
    }
  }
}

// Interpolation by the definition: tent or Keys' kernel around the sampled position, edges
// repeated.
double sample(int64_t in, double at, bool bicubic, const std::function<double(int64_t)>& value) {
  const auto kernel = [&](double t) {
    t = std::abs(t);
    if (!bicubic) return std::max(0.0, 1 - t);
    if (t <= 1) return 1.25 * t * t * t - 2.25 * t * t + 1;
    return t < 2 ? -0.75 * (t * t * t - 5 * t * t + 8 * t - 4) : 0.0;
  };
  double sum = 0;
  for (auto j = static_cast<int64_t>(std::floor(at)) - 2;
       j <= static_cast<int64_t>(std::floor(at)) + 3; ++j) {
    sum += kernel(at - static_cast<double>(j)) * value(std::clamp<int64_t>(j, 0, in - 1));
  }
  return sum;
}

TEST(ResizeImage, MatchesTheDefinition) {
  for (const auto& [h, w, oh, ow] :
       {std::tuple{5, 7, 11, 3}, {1, 1, 4, 2}, {8, 8, 4, 4}, {40, 72, 56, 56}}) {
    const HostTensor x = normals(Shape{2, h, w, 3}, 1);
    for (const bool bicubic : {false, true}) {
      HostTensor want(DType::kF64, Shape{2, oh, ow, 3});
      for (int64_t i = 0; i < want.num_elements(); ++i) {
        const int64_t c = i % 3, col = i / 3 % ow, row = i / 3 / ow % oh, picture = i / 3 / ow / oh;
        const double y = (static_cast<double>(row) + 0.5) * h / oh - 0.5,
                     z = (static_cast<double>(col) + 0.5) * w / ow - 0.5;
        want.as<double>()[static_cast<size_t>(i)] = sample(h, y, bicubic, [&](int64_t r) {
          return sample(w, z, bicubic, [&](int64_t k) {
            return x.as<double>()[static_cast<size_t>(((picture * h + r) * w + k) * 3 + c)];
          });
        });
      }
      for (const DType dtype : {DType::kF64, DType::kF32}) {
        const HostTensor got =
            reference::run_graph({{"x", x.to(dtype)}}, [&](Builder& b, Values& in) {
              b.graph().add_output(
                  "y", resize_image(b, in["x"], oh, ow,
                                    bicubic ? ResizeFilter::kBicubic : ResizeFilter::kBilinear));
            }).at("y");
        // float positions near 72 are rounded to 4e-6 of a pixel.
        EXPECT_LE(relative(got, want), dtype == DType::kF64 ? 1e-13 : 4e-6)
            << h << " to " << oh << bicubic;
      }
    }
  }
}

TEST(UpsampleNearest2x, RepeatsPixels) {
  const HostTensor x = normals(Shape{2, 2, 3, 4, 5}, 1);
  const HostTensor y = reference::run_graph({{"x", x}}, [](Builder& b, Values& in) {
                         b.graph().add_output("y", upsample_nearest2x(b, in["x"]));
                       }).at("y");
  ASSERT_EQ(y.shape(), (Shape{2, 2, 6, 8, 5}));
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    const int64_t c = i % 5, w = i / 5 % 8, h = i / 40 % 6, frame = i / 240;
    ASSERT_EQ(y.as<double>()[static_cast<size_t>(i)],
              x.as<double>()[static_cast<size_t>(((frame * 3 + h / 2) * 4 + w / 2) * 5 + c)]);
  }
}

TEST(Embedding, TakesRowsAndRefusesBadIds) {
  const HostTensor table = normals(Shape{7, 3}, 1);
  HostTensor ids(DType::kI32, Shape{2, 2});
  const auto run = [&](std::vector<int32_t> values) {
    std::ranges::copy(values, ids.as<int32_t>().begin());
    return reference::run_graph({{"ids", ids}, {"table", table}},
                                [](Builder& b, Values& in) {
                                  b.graph().add_output("y", embedding(b, in["ids"], in["table"]));
                                })
        .at("y");
  };
  const HostTensor y = run({6, 0, 3, 3});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(y.as<double>()[1], table.as<double>()[19]);
  EXPECT_EQ(y.as<double>()[9], table.as<double>()[9]);
  EXPECT_THROW(run({0, 7, 0, 0}), InternalError);
  EXPECT_THROW(run({0, 0, -1, 0}), InternalError);
}

TEST(RelativeBias, FollowsTheDistance) {
  const HostTensor table = normals(Shape{3, 2}, 1);
  HostTensor bucket(DType::kI32, Shape{6});  // 3 queries, 4 keys: distances -2 .. 3
  std::ranges::copy(std::vector<int32_t>{2, 1, 0, 1, 1, 2}, bucket.as<int32_t>().begin());
  const HostTensor y =
      reference::run_graph({{"table", table}, {"bucket", bucket}}, [](Builder& b, Values& in) {
        b.graph().add_output("y", relative_bias(b, in["table"], in["bucket"], 3, 4));
      }).at("y");
  ASSERT_EQ(y.shape(), (Shape{2, 3, 4}));
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t q = 0; q < 3; ++q) {
      for (int64_t k = 0; k < 4; ++k) {
        const int32_t row = bucket.as<int32_t>()[static_cast<size_t>(k - q + 2)];
        ASSERT_EQ(y.as<double>()[static_cast<size_t>((h * 3 + q) * 4 + k)],
                  table.as<double>()[static_cast<size_t>(row * 2 + h)]);
      }
    }
  }
}

TEST(PixelsToFloat, CoversTheRangeExactly) {
  HostTensor x(DType::kU8, Shape{256});
  for (int i = 0; i < 256; ++i) x.as<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(i);
  const HostTensor y = reference::run_graph({{"x", x}}, [](Builder& b, Values& in) {
                         b.graph().add_output("y", pixels_to_float(b, in["x"]));
                       }).at("y");
  EXPECT_EQ(y.as<float>()[0], -1.0f);
  EXPECT_EQ(y.as<float>()[255], 1.0f);
  for (int i = 0; i < 256; ++i) {
    EXPECT_NEAR(y.as<float>()[static_cast<size_t>(i)], i / 127.5 - 1, 1.3e-7);
  }
}

}  // namespace
}  // namespace wam
