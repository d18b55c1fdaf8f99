#include <array>
#include <cstring>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

// The result's dims, longer than one and merged where neighbours stay neighbours in x.
struct Walk {
  int ndim = 0;
  std::array<int64_t, Shape::kMaxDims> size{}, x_stride{}, y_stride{};
};

Walk make_walk(const Shape& x, const std::vector<int64_t>& perm) {
  std::array<int64_t, Shape::kMaxDims> strides{};
  int64_t stride = 1;
  for (int i = x.ndim() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = stride;
    stride *= x[i];
  }
  Walk walk;
  for (const int64_t dim : perm) {
    const int64_t size = x[static_cast<int>(dim)], x_stride = strides[static_cast<size_t>(dim)];
    if (size == 1) continue;
    auto& last = walk.x_stride[static_cast<size_t>(std::max(0, walk.ndim - 1))];
    if (walk.ndim > 0 && last == x_stride * size) {
      walk.size[static_cast<size_t>(walk.ndim - 1)] *= size;
      last = x_stride;
      continue;
    }
    walk.size[static_cast<size_t>(walk.ndim)] = size;
    walk.x_stride[static_cast<size_t>(walk.ndim++)] = x_stride;
  }
  int64_t y_stride = 1;
  for (int i = walk.ndim - 1; i >= 0; --i) {
    walk.y_stride[static_cast<size_t>(i)] = y_stride;
    y_stride *= walk.size[static_cast<size_t>(i)];
  }
  return walk;
}

// Takes dim `i` out of the walk.
void remove(Walk& walk, int i) {
  for (int k = i; k + 1 < walk.ndim; ++k) {
    const auto to = static_cast<size_t>(k);
    walk.size[to] = walk.size[to + 1];
    walk.x_stride[to] = walk.x_stride[to + 1];
    walk.y_stride[to] = walk.y_stride[to + 1];
  }
  --walk.ndim;
}

struct Offsets {
  int64_t x = 0, y = 0;
};
Offsets offsets_of(const Walk& walk, int64_t position) {
  Offsets at;
  for (int i = walk.ndim - 1; i >= 0; --i) {
    const auto k = static_cast<size_t>(i);
    at.x += position % walk.size[k] * walk.x_stride[k];
    at.y += position % walk.size[k] * walk.y_stride[k];
    position /= walk.size[k];
  }
  return at;
}

int64_t count_of(const Walk& walk) {
  int64_t count = 1;
  for (int i = 0; i < walk.ndim; ++i) count *= walk.size[static_cast<size_t>(i)];
  return count;
}

// The last dim keeps its place: rows are copied whole.
template <typename T>
std::unique_ptr<Kernel> copy_rows(Walk walk) {
  const int64_t row = walk.ndim == 0 ? 1 : walk.size[static_cast<size_t>(walk.ndim - 1)];
  if (walk.ndim > 0) remove(walk, walk.ndim - 1);
  const int64_t rows = row == 0 ? 0 : count_of(walk);
  return cpu::make_kernel([=](const KernelIo& io) {
    cpu::parallel_for(rows, cpu::row_grain(row), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Offsets at = offsets_of(walk, i);
        std::memcpy(io.out<T>(0) + at.y, io.in<T>(0) + at.x, static_cast<size_t>(row) * sizeof(T));
      }
    });
  });
}

// Otherwise planes of (x's last dim, y's last dim) are transposed in square tiles.
template <typename T>
std::unique_ptr<Kernel> transpose_planes(Walk walk) {
  constexpr int64_t kTile = 32;
  const auto last = static_cast<size_t>(walk.ndim - 1);
  const int64_t width = walk.size[last], x_step = walk.x_stride[last];
  int inner = 0;
  while (walk.x_stride[static_cast<size_t>(inner)] != 1) ++inner;
  const int64_t height = walk.size[static_cast<size_t>(inner)];
  const int64_t y_step = walk.y_stride[static_cast<size_t>(inner)];
  remove(walk, walk.ndim - 1);
  remove(walk, inner);
  const int64_t bands = (height + kTile - 1) / kTile, planes = count_of(walk);
  return cpu::make_kernel([=](const KernelIo& io) {
    const int64_t grain = cpu::row_grain(kTile * width);
    cpu::parallel_for(planes * bands, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const Offsets at = offsets_of(walk, task / bands);
        const int64_t first = task % bands * kTile, stop = std::min(height, first + kTile);
        const T* x = io.in<T>(0) + at.x;
        T* y = io.out<T>(0) + at.y;
        for (int64_t tile = 0; tile < width; tile += kTile) {
          const int64_t edge = std::min(width, tile + kTile);
          for (int64_t i = first; i < stop; ++i) {
            for (int64_t j = tile; j < edge; ++j) y[i * y_step + j] = x[j * x_step + i];
          }
        }
      }
    });
  });
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Walk walk = make_walk(s.inputs[0].shape, s.attrs.integers("perm"));
  const bool rows = walk.ndim == 0 || s.outputs[0].shape.num_elements() == 0 ||
                    walk.x_stride[static_cast<size_t>(walk.ndim - 1)] == 1;
  return cpu::dispatch_bits(s.outputs[0].dtype, [&]<typename T>() {
    return rows ? copy_rows<T>(walk) : transpose_planes<T>(walk);
  });
}

}  // namespace

extern const KernelDef permute_cpu;
const KernelDef permute_cpu = {.op = "permute", .create = create};

}  // namespace wam
