// Shared by CPU kernels: wrapping a function as a Kernel, dtype dispatch, and loops over threads
// whose partition depends on sizes alone, so that results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "wam/base/check.h"
#include "wam/kernels/kernel.h"

namespace wam::cpu {

template <typename F>
std::unique_ptr<Kernel> make_kernel(F run) {
  struct FunctionKernel final : Kernel {
    explicit FunctionKernel(F f) : function(std::move(f)) {}
    void run(const KernelIo& io) override { function(io); }
    F function;
  };
  return std::make_unique<FunctionKernel>(std::move(run));
}

// Calls f.template operator()<float>() or <double>(); CPU arithmetic knows no other type.
template <typename F>
auto dispatch_float(DType dtype, F f) {
  WAM_CHECK(dtype == DType::kF32 || dtype == DType::kF64)
      << "CPU kernels compute in f32 or f64, not " << name(dtype);
  return dtype == DType::kF64 ? f.template operator()<double>() : f.template operator()<float>();
}

// Calls f.template operator()<an unsigned integer of that size>(): for kernels that only move elements.
template <typename F>
auto dispatch_bits(DType dtype, F f) {
  switch (size_bytes(dtype)) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    default: return f.template operator()<uint64_t>();
  }
}

// Row numbers are data: a wrong one must not become a wild access. Call before going parallel.
inline void check_index(const int32_t* index, int64_t count, int64_t bound, std::string_view op) {
  for (int64_t i = 0; i < count; ++i) {
    WAM_CHECK(index[i] >= 0 && index[i] < bound)
        << op << ": index[" << i << "] = " << index[i] << ", bound " << bound;
  }
}

// f(begin, end) over [0, count) in chunks of `grain`, shared out to OpenMP threads. Each element is
// handled by exactly one call, so element-wise and row-wise work is independent of thread count.
template <typename F>
void parallel_for(int64_t count, int64_t grain, const F& f) {
  if (count <= grain) {
    if (count > 0) f(int64_t{0}, count);
    return;
  }
  const int64_t chunks = (count + grain - 1) / grain;
#pragma omp parallel for schedule(static)
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    f(chunk * grain, std::min(count, (chunk + 1) * grain));
  }
}

// f(i) for i in [0, count), for items that cost much: each on one thread inside a parallel region, so
// that oneDNN calls within stay on that thread, and given out as threads come free.
template <typename F>
void parallel_items(int64_t count, const F& f) {
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t i = 0; i < count; ++i) f(i);
}

// A grain that makes a chunk cost about 16k element operations.
inline int64_t row_grain(int64_t row_size) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, row_size));
}

// Input 0 to output 0, which may be the same.
inline void copy_bytes(const KernelIo& io, int64_t bytes) {
  if (io.inputs[0] == io.outputs[0]) return;
  std::memcpy(io.outputs[0], io.inputs[0], static_cast<size_t>(bytes));
}

// Sum in a fixed order that vectorises: 16 strided partial sums, then a tree over them.
template <typename T, typename F>
T ordered_sum(int64_t count, const F& term) {
  constexpr int kLanes = 16;
  T partial[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) partial[lane] += term(i + lane);
  }
  for (int lane = 0; lane < kLanes && i < count; ++i, ++lane) partial[lane] += term(i);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) partial[lane] += partial[lane + width];
  }
  return partial[0];
}

}  // namespace wam::cpu
