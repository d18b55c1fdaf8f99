#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

// A row of the result is a window of one head's values by distance; those are gathered first.
std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& bias = s.outputs[0].shape;
  const int64_t heads = bias[0], queries = bias[1], keys = bias[2], buckets = s.inputs[0].shape[0];
  const int64_t distances = queries + keys - 1;
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const T* table = io.in<T>(0);
      const int32_t* bucket = io.in<int32_t>(1);
      cpu::check_index(bucket, distances, buckets, "relative_bias");
      T* by_distance = static_cast<T*>(io.workspace);
      cpu::parallel_for(heads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t head = begin; head < end; ++head) {
          T* values = by_distance + head * distances;
          for (int64_t i = 0; i < distances; ++i) values[i] = table[bucket[i] * heads + head];
          for (int64_t q = 0; q < queries; ++q) {
            std::copy_n(values + queries - 1 - q, keys, io.out<T>(0) + (head * queries + q) * keys);
          }
        }
      });
    });
  });
}

int64_t workspace_bytes(const KernelSignature& s) {
  const Shape& bias = s.outputs[0].shape;
  return bias[0] * (bias[1] + bias[2] - 1) * size_bytes(s.outputs[0].dtype);
}

}  // namespace

extern const KernelDef relative_bias_cpu;
const KernelDef relative_bias_cpu = {
    .op = "relative_bias", .create = create, .workspace_bytes = workspace_bytes};

}  // namespace wam
