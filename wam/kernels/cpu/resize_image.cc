#include <cmath>
#include <vector>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

// Samples along one side: output i is the sum over taps of weights[i * taps + j] * input at
// positions[i * taps + j].
template <typename T>
struct Taps {
  int64_t count = 0;  // taps of an output
  std::vector<int64_t> positions;
  std::vector<T> weights;
};

// Keys' cubic convolution kernel at distance x >= 0.
template <typename T>
T cubic(T x) {
  constexpr T a = T{-0.75};
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : T{0};
}

template <typename T>
Taps<T> make_taps(int64_t in, int64_t out, bool bicubic) {
  Taps<T> taps{bicubic ? 4 : 2, {}, {}};
  const T scale = static_cast<T>(in) / static_cast<T>(out);
  for (int64_t i = 0; i < out; ++i) {
    T at = scale * (static_cast<T>(i) + T{0.5}) - T{0.5};
    if (!bicubic && at < 0) at = 0;
    const T floor = std::floor(at), t = at - floor;
    const int64_t first = static_cast<int64_t>(floor) - (bicubic ? 1 : 0);
    for (int64_t j = 0; j < taps.count; ++j) {
      taps.positions.push_back(std::clamp<int64_t>(first + j, 0, in - 1));
      const T distance = std::abs(t - static_cast<T>(j - (bicubic ? 1 : 0)));
      taps.weights.push_back(bicubic ? cubic(distance) : 1 - distance);
    }
  }
  return taps;
}

struct Sizes {
  int64_t pictures, in_height, in_width, height, width, channels;
};

// One row of one picture.
template <typename T>
void resize_row(const Sizes& z, const Taps<T>& x_taps, const T* picture, const int64_t* rows,
                const T* row_weights, int64_t num_rows, T* out) {
  for (int64_t x = 0; x < z.width; ++x) {
    const int64_t* columns = x_taps.positions.data() + x * x_taps.count;
    const T* weights = x_taps.weights.data() + x * x_taps.count;
    for (int64_t c = 0; c < z.channels; ++c) {
      T sum = 0;
      for (int64_t j = 0; j < num_rows; ++j) {
        const T* row = picture + rows[j] * z.in_width * z.channels + c;
        T along = 0;
        for (int64_t i = 0; i < x_taps.count; ++i)
          along += row[columns[i] * z.channels] * weights[i];
        sum += along * row_weights[j];
      }
      out[x * z.channels + c] = sum;
    }
  }
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape &in = s.inputs[0].shape, &out = s.outputs[0].shape;
  const int64_t picture = in[-3] * in[-2] * in[-1];
  const Sizes z{
      in.num_elements() / std::max<int64_t>(1, picture), in[-3], in[-2], out[-3], out[-2], in[-1]};
  const bool bicubic = s.attrs.text("filter") == "bicubic";
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    const Taps<T> y_taps = make_taps<T>(z.in_height, z.height, bicubic);
    const Taps<T> x_taps = make_taps<T>(z.in_width, z.width, bicubic);
    return cpu::make_kernel([=](const KernelIo& io) {
      const int64_t rows = z.pictures * z.height, row_size = z.width * z.channels;
      cpu::parallel_for(rows, cpu::row_grain(8 * row_size), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t tap = row % z.height * y_taps.count;
          resize_row(z, x_taps, io.in<T>(0) + row / z.height * picture,
                     y_taps.positions.data() + tap, y_taps.weights.data() + tap, y_taps.count,
                     io.out<T>(0) + row * row_size);
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef resize_image_cpu;
const KernelDef resize_image_cpu = {.op = "resize_image", .create = create};

}  // namespace wam
