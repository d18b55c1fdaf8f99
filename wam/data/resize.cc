#include "wam/data/resize.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "wam/base/check.h"

namespace wam::data {
namespace {

float triangle(float x) {
  x = std::abs(x);
  return x < 1.0f ? 1.0f - x : 0.0f;
}

// Inputs under the filter of one output: first index and weights before padding to num_taps.
struct Support {
  int64_t first = 0;
  std::vector<float> weights;
};

Support support_of(int64_t out, float scale, float radius, int64_t in_size) {
  const float inverse = scale >= 1.0f ? 1.0f / scale : 1.0f;
  const float center = scale * (static_cast<float>(out) + 0.5f);
  const auto first = std::max<int64_t>(static_cast<int64_t>(center - radius + 0.5f), 0);
  const auto end = std::min<int64_t>(static_cast<int64_t>(center + radius + 0.5f), in_size);
  Support support{first, {}};
  float total = 0;
  for (int64_t i = first; i < end; ++i) {
    const float w = triangle((static_cast<float>(i) - center + 0.5f) * inverse);
    support.weights.push_back(w);
    total += w;
  }
  for (float& w : support.weights) w /= total;
  return support;
}

// One pixel of four floats.
typedef float Pixel __attribute__((vector_size(16), aligned(4), may_alias));

// The number of taps as a constant lets the compiler unroll: kTaps, or taps.num_taps for 0.
template <int kTaps>
void resize_row(const float* in, const ResizeTaps& taps, float* out) {
  const int64_t num_taps = kTaps > 0 ? kTaps : taps.num_taps;
  const float* w = taps.weights.data();
  for (int64_t i = 0; i < taps.out_size; ++i, w += num_taps, out += 4) {
    const float* pixel = in + 4 * static_cast<int64_t>(taps.starts[static_cast<size_t>(i)]);
    Pixel sum = *reinterpret_cast<const Pixel*>(pixel) * w[0];
    for (int64_t j = 1; j < num_taps; ++j) {
      sum += *reinterpret_cast<const Pixel*>(pixel + 4 * j) * w[j];
    }
    *reinterpret_cast<Pixel*>(out) = sum;
  }
}

// Output row `y`: a weighted sum of rows of `row_size` floats, a multiple of 4.
template <int kTaps>
void weighted_rows(const float* in, int64_t row_size, const ResizeTaps& taps, int64_t y,
                   float* out) {
  const int64_t num_taps = kTaps > 0 ? kTaps : taps.num_taps;
  const float* row = in + taps.starts[static_cast<size_t>(y)] * row_size;
  const float* w = taps.weights.data() + y * num_taps;
  for (int64_t i = 0; i < row_size; i += 4) {
    Pixel sum = *reinterpret_cast<const Pixel*>(row + i) * w[0];
    for (int64_t j = 1; j < num_taps; ++j) {
      sum += *reinterpret_cast<const Pixel*>(row + j * row_size + i) * w[j];
    }
    *reinterpret_cast<Pixel*>(out + i) = sum;
  }
}

// Calls function(std::integral_constant of the number of taps), 0 for many.
template <typename Function>
void with_taps(int64_t num_taps, Function&& function) {
  switch (num_taps) {
    case 2:
      return function(std::integral_constant<int, 2>());
    case 3:
      return function(std::integral_constant<int, 3>());
    case 4:
      return function(std::integral_constant<int, 4>());
    case 5:
      return function(std::integral_constant<int, 5>());
    case 6:
      return function(std::integral_constant<int, 6>());
    default:
      return function(std::integral_constant<int, 0>());
  }
}

void split_planes(const float* pixels, int64_t width, float* r, float* g, float* b) {
  for (int64_t x = 0; x < width; ++x) {
    r[x] = pixels[4 * x];
    g[x] = pixels[4 * x + 1];
    b[x] = pixels[4 * x + 2];
  }
}

// Position of an output between two inputs.
struct Between {
  int64_t low, high;
  float low_weight, high_weight;
};

Between between(int64_t out, int64_t in_size, int64_t out_size) {
  const float scale = static_cast<float>(in_size) / static_cast<float>(out_size);
  const float at = std::max(scale * (static_cast<float>(out) + 0.5f) - 0.5f, 0.0f);
  const int64_t low = std::min(static_cast<int64_t>(at), in_size - 1);
  const float high_weight = at - static_cast<float>(low);
  return {low, std::min(low + 1, in_size - 1), 1.0f - high_weight, high_weight};
}

}  // namespace

ResizeTaps antialias_taps(int64_t in_size, int64_t out_size) {
  WAM_CHECK(in_size > 0 && out_size > 0) << in_size << " -> " << out_size;
  const float scale = static_cast<float>(in_size) / static_cast<float>(out_size);
  const float radius = scale >= 1.0f ? scale : 1.0f;
  std::vector<Support> supports;
  int64_t num_taps = 0;
  for (int64_t i = 0; i < out_size; ++i) {
    supports.push_back(support_of(i, scale, radius, in_size));
    num_taps = std::max<int64_t>(num_taps, std::ssize(supports.back().weights));
  }
  ResizeTaps taps{in_size, out_size, num_taps, {}, {}};
  taps.starts.resize(static_cast<size_t>(out_size));
  taps.weights.assign(static_cast<size_t>(num_taps * out_size), 0.0f);
  for (int64_t i = 0; i < out_size; ++i) {
    const Support& support = supports[static_cast<size_t>(i)];
    // Near the end the window moves left so that every tap reads inside the row.
    const int64_t start = std::min(support.first, in_size - num_taps);
    taps.starts[static_cast<size_t>(i)] = static_cast<int32_t>(start);
    for (int64_t j = 0; j < std::ssize(support.weights); ++j) {
      const int64_t tap = support.first - start + j;
      taps.weights[static_cast<size_t>(i * num_taps + tap)] =
          support.weights[static_cast<size_t>(j)];
    }
  }
  return taps;
}

AntialiasResize::AntialiasResize(int64_t in_h, int64_t in_w, int64_t out_h, int64_t out_w)
    : x_(antialias_taps(in_w, out_w)), y_(antialias_taps(in_h, out_h)) {}

void AntialiasResize::run(const FillRow& fill_row, std::span<float> out,
                          std::vector<float>& scratch) const {
  const int64_t in_h = y_.in_size, in_w = x_.in_size, out_h = y_.out_size, out_w = x_.out_size;
  const int64_t plane = out_h * out_w, row_size = 4 * out_w;
  WAM_CHECK(std::ssize(out) == 3 * plane);
  // Rows resized along x, then one input row, then one output row.
  const auto scratch_size = static_cast<size_t>((in_h + 1) * row_size + 4 * in_w);
  if (scratch.size() != scratch_size) scratch.assign(scratch_size, 0.0f);
  float* narrow = scratch.data();
  const std::span<float> in_row(narrow + in_h * row_size, static_cast<size_t>(4 * in_w));
  float* out_row = in_row.data() + in_row.size();
  for (int64_t y = 0; y < in_h; ++y) {
    if (in_w == out_w) {
      fill_row(y, {narrow + y * row_size, static_cast<size_t>(row_size)});
    } else {
      fill_row(y, in_row);
      with_taps(x_.num_taps,
                [&](auto taps) { resize_row<taps()>(in_row.data(), x_, narrow + y * row_size); });
    }
  }
  for (int64_t y = 0; y < out_h; ++y) {
    const float* row = narrow + y * row_size;
    if (in_h != out_h) {
      with_taps(y_.num_taps,
                [&](auto taps) { weighted_rows<taps()>(narrow, row_size, y_, y, out_row); });
      row = out_row;
    }
    float* r = out.data() + y * out_w;
    split_planes(row, out_w, r, r + plane, r + 2 * plane);
  }
}

void resize_bilinear(std::span<const float> in, int64_t channels, int64_t in_h, int64_t in_w,
                     int64_t out_h, int64_t out_w, std::span<float> out) {
  WAM_CHECK(std::ssize(in) == channels * in_h * in_w &&
            std::ssize(out) == channels * out_h * out_w);
  for (int64_t y = 0; y < out_h; ++y) {
    const Between row = between(y, in_h, out_h);
    for (int64_t x = 0; x < out_w; ++x) {
      const Between column = between(x, in_w, out_w);
      for (int64_t c = 0; c < channels; ++c) {
        const float* plane = in.data() + c * in_h * in_w;
        const float* top = plane + row.low * in_w;
        const float* bottom = plane + row.high * in_w;
        const auto along_x = [&](const float* p) {
          return column.low_weight * p[column.low] + column.high_weight * p[column.high];
        };
        out[static_cast<size_t>((c * out_h + y) * out_w + x)] =
            row.low_weight * along_x(top) + row.high_weight * along_x(bottom);
      }
    }
  }
}

HostTensor frames_to_model_input(const HostTensor& frames, int64_t height, int64_t width) {
  const Shape& shape = frames.shape();
  WAM_CHECK(shape.ndim() == 4 && shape[3] == 3) << shape.to_string();
  const int64_t num_frames = shape[0], h = shape[1], w = shape[2], pixels = h * w;
  HostTensor result(DType::kF32, {3, num_frames, height, width});
  std::vector<float> plane(static_cast<size_t>(pixels));
  const uint8_t* bytes = frames.as<uint8_t>().data();
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t t = 0; t < num_frames; ++t) {
      const uint8_t* frame = bytes + t * pixels * 3 + c;
      for (int64_t i = 0; i < pixels; ++i) {
        plane[static_cast<size_t>(i)] = (static_cast<float>(frame[i * 3]) / 255.0f - 0.5f) / 0.5f;
      }
      const auto out =
          result.as<float>().subspan(static_cast<size_t>((c * num_frames + t) * height * width),
                                     static_cast<size_t>(height * width));
      if (h == height && w == width)
        std::copy(plane.begin(), plane.end(), out.begin());
      else
        resize_bilinear(plane, 1, h, w, height, width, out);
    }
  }
  return result;
}

}  // namespace wam::data
