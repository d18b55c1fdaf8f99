// Work is cut into units of the widest power of two (up to 16 bytes) that sizes and addresses
// allow; one thread a unit, writes coalesced.
#include "wam/kernels/cuda/moves.h"

#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kThreads = 256;

template <typename F>
void dispatch_unit(int64_t common, const F& f) {
  if (common % 16 == 0) return f.template operator()<uint4>();
  if (common % 8 == 0) return f.template operator()<uint2>();
  if (common % 4 == 0) return f.template operator()<uint32_t>();
  if (common % 2 == 0) return f.template operator()<uint16_t>();
  f.template operator()<uint8_t>();
}
// A number that 16, 8, 4, 2 divide exactly if they divide all of these.
int64_t common_of(std::initializer_list<int64_t> sizes,
                  std::initializer_list<const void*> pointers) {
  int64_t all = 16;
  for (const int64_t size : sizes) all |= size;
  for (const void* p : pointers) all |= static_cast<int64_t>(reinterpret_cast<uintptr_t>(p));
  return all & -all;
}

template <typename Unit>
__global__ void copy_blocks_kernel(BlockCopy c, const Unit* x, Unit* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < c.blocks * c.bytes;
       i += step) {
    y[i / c.bytes * c.y_stride + i % c.bytes] = x[i / c.bytes * c.x_stride + i % c.bytes];
  }
}

// One part for each row of the grid.
template <typename Unit>
__global__ void copy_parts_kernel(const __grid_constant__ PartCopy p, Unit* y) {
  const BlockCopy& c = p.copy[blockIdx.y];
  const Unit* x = static_cast<const Unit*>(p.x[blockIdx.y]);
  y += p.offset[blockIdx.y];
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < c.blocks * c.bytes;
       i += step) {
    y[i / c.bytes * c.y_stride + i % c.bytes] = x[i / c.bytes * c.x_stride + i % c.bytes];
  }
}

template <typename Unit>
__global__ void move_rows_kernel(RowMove m, const Unit* x, const int32_t* index, Unit* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, count = m.batch * m.moved * m.bytes;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t row = i / m.bytes, b = row / m.moved, k = row % m.moved, at = i % m.bytes;
    const int64_t to = index[k];
    const int64_t from_row = b * m.x_rows + (m.put ? k : to),
                  to_row = b * m.y_rows + (m.put ? to : k);
    y[to_row * m.bytes + at] = x[from_row * m.bytes + at];
  }
}

template <typename Unit>
__global__ void repeat_rows_kernel(RowRepeat r, const Unit* x, Unit* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, count = r.rows * r.bytes;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    y[i] = x[i / r.bytes / r.repeat % r.period * r.bytes + i % r.bytes];
  }
}

template <typename Unit>
__global__ void permute_kernel(Permutation p, const Unit* x, Unit* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.count; i += step) {
    int64_t rest = i, from = 0;
#pragma unroll
    for (int dim = Shape::kMaxDims - 1; dim >= 0; --dim) {
      if (dim >= p.ndim) continue;
      from += rest % p.size[dim] * p.x_stride[dim];
      rest /= p.size[dim];
    }
    y[i] = x[from];
  }
}

template <typename Unit>
__global__ void upsample2x_kernel(int64_t count, int64_t height, int64_t width, int64_t bytes,
                                  const Unit* x, Unit* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t pixel = i / bytes, column = pixel % (2 * width), row = pixel / (2 * width);
    const int64_t frame = row / (2 * height), from_row = frame * height + row % (2 * height) / 2;
    y[i] = x[(from_row * width + column / 2) * bytes + i % bytes];
  }
}

}  // namespace

DimBlocks dim_blocks(const TensorType& type, int dim) {
  DimBlocks blocks{.unit = size_bytes(type.dtype)};
  for (int i = 0; i < dim; ++i) blocks.outer *= type.shape[i];
  for (int i = dim + 1; i < type.shape.ndim(); ++i) blocks.unit *= type.shape[i];
  return blocks;
}

void launch_copy_blocks(const BlockCopy& copy, const void* x, void* y, cudaStream_t stream) {
  if (copy.blocks * copy.bytes == 0) return;
  dispatch_unit(
      common_of({copy.bytes, copy.x_stride, copy.y_stride}, {x, y}), [&]<typename Unit>() {
        constexpr auto kSize = static_cast<int64_t>(sizeof(Unit));
        const BlockCopy units{copy.blocks, copy.bytes / kSize, copy.x_stride / kSize,
                              copy.y_stride / kSize};
        copy_blocks_kernel<<<grid_for(units.blocks * units.bytes, kThreads), kThreads, 0, stream>>>(
            units, static_cast<const Unit*>(x), static_cast<Unit*>(y));
      });
  check_launch("copy_blocks");
}

void launch_copy_parts(const PartCopy& parts, void* y, cudaStream_t stream) {
  int64_t all = common_of({}, {y}), most = 0;
  for (int i = 0; i < parts.num_parts; ++i) {
    const BlockCopy& c = parts.copy[i];
    all |= common_of({c.bytes, c.x_stride, c.y_stride, parts.offset[i]}, {parts.x[i]});
    most = std::max(most, c.blocks * c.bytes);
  }
  if (most == 0) return;
  dispatch_unit(all & -all, [&]<typename Unit>() {
    constexpr auto kSize = static_cast<int64_t>(sizeof(Unit));
    PartCopy units = parts;
    for (int i = 0; i < units.num_parts; ++i) {
      BlockCopy& c = units.copy[i];
      c = {c.blocks, c.bytes / kSize, c.x_stride / kSize, c.y_stride / kSize};
      units.offset[i] /= kSize;
    }
    const dim3 grid(grid_for(most / kSize, kThreads), static_cast<unsigned>(parts.num_parts));
    copy_parts_kernel<<<grid, kThreads, 0, stream>>>(units, static_cast<Unit*>(y));
  });
  check_launch("copy_parts");
}

void launch_move_rows(const RowMove& move, const void* x, const int32_t* index, void* y,
                      cudaStream_t stream) {
  if (move.batch * move.moved * move.bytes == 0) return;
  dispatch_unit(common_of({move.bytes}, {x, y}), [&]<typename Unit>() {
    RowMove units = move;
    units.bytes /= static_cast<int64_t>(sizeof(Unit));
    move_rows_kernel<<<grid_for(units.batch * units.moved * units.bytes, kThreads), kThreads, 0,
                       stream>>>(units, static_cast<const Unit*>(x), index, static_cast<Unit*>(y));
  });
  check_launch("move_rows");
}

void launch_repeat_rows(const RowRepeat& repeat, const void* x, void* y, cudaStream_t stream) {
  if (repeat.rows * repeat.bytes == 0) return;
  dispatch_unit(common_of({repeat.bytes}, {x, y}), [&]<typename Unit>() {
    RowRepeat units = repeat;
    units.bytes /= static_cast<int64_t>(sizeof(Unit));
    repeat_rows_kernel<<<grid_for(units.rows * units.bytes, kThreads), kThreads, 0, stream>>>(
        units, static_cast<const Unit*>(x), static_cast<Unit*>(y));
  });
  check_launch("repeat_rows");
}

void launch_permute(const Permutation& permutation, int64_t element_bytes, const void* x, void* y,
                    cudaStream_t stream) {
  if (permutation.count == 0) return;
  Permutation p = permutation;
  // The last dim keeping its place, its elements can travel together.
  const bool together = p.ndim > 0 && p.x_stride[p.ndim - 1] == 1;
  int64_t common = element_bytes;
  if (together) {
    common = common_of({p.size[p.ndim - 1] * element_bytes}, {x, y});
    for (int i = 0; i + 1 < p.ndim; ++i)
      common = common_of({common, p.x_stride[i] * element_bytes}, {});
  }
  const int64_t unit = std::max(common, element_bytes), packed = unit / element_bytes;
  if (packed > 1) {
    p.size[p.ndim - 1] /= packed;
    p.count /= packed;
    for (int i = 0; i + 1 < p.ndim; ++i) p.x_stride[i] /= packed;
  }
  dispatch_unit(unit, [&]<typename Unit>() {
    permute_kernel<<<grid_for(p.count, kThreads), kThreads, 0, stream>>>(
        p, static_cast<const Unit*>(x), static_cast<Unit*>(y));
  });
  check_launch("permute");
}

void launch_upsample2x(int64_t frames, int64_t height, int64_t width, int64_t bytes, const void* x,
                       void* y, cudaStream_t stream) {
  if (frames * height * width * bytes == 0) return;
  dispatch_unit(common_of({bytes}, {x, y}), [&]<typename Unit>() {
    const int64_t units = bytes / static_cast<int64_t>(sizeof(Unit));
    const int64_t count = frames * height * width * 4 * units;
    upsample2x_kernel<<<grid_for(count, kThreads), kThreads, 0, stream>>>(
        count, height, width, units, static_cast<const Unit*>(x), static_cast<Unit*>(y));
  });
  check_launch("upsample2x");
}

}  // namespace wam::cuda
