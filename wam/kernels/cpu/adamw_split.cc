#include <cstring>

#include "wam/kernels/cpu/adamw_step.h"
#include "wam/kernels/cpu/support.h"
#include "wam/tensor/split_float.h"

namespace wam {
namespace {

using cpu::adamw_step::Factors;

void copy_all(const KernelIo& io, int64_t count) {
  constexpr size_t kBytes[] = {2, 2, 4, 4};
  for (size_t i = 0; i < 4; ++i) {
    if (io.inputs[i] == io.outputs[i]) continue;
    std::memcpy(io.outputs[i], io.inputs[i], static_cast<size_t>(count) * kBytes[i]);
  }
}

void step_range(const Factors<float>& f, const KernelIo& io, bool narrow, int64_t begin,
                int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float p = join_float(io.in<uint16_t>(0)[i], io.in<int16_t>(1)[i]);
    float m = io.in<float>(2)[i], v = io.in<float>(3)[i];
    const float g = narrow ? bf16_to_float(io.in<uint16_t>(4)[i]) : io.in<float>(4)[i];
    cpu::adamw_step::step(f, g, p, m, v);
    const SplitFloat halves = split_float(p);
    io.out<uint16_t>(0)[i] = halves.high;
    io.out<int16_t>(1)[i] = halves.low;
    io.out<float>(2)[i] = m;
    io.out<float>(3)[i] = v;
  }
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const double beta1 = s.attrs.real("beta1"), beta2 = s.attrs.real("beta2");
  const double eps = s.attrs.real("eps");
  const int64_t count = s.outputs[0].shape.num_elements();
  const bool narrow = s.inputs[4].dtype == DType::kBF16;
  return cpu::make_kernel([=](const KernelIo& io) {
    const float* scalars = io.in<float>(5);
    if (scalars[cpu::adamw_step::kSkip] != 0) return copy_all(io, count);
    const auto factors = cpu::adamw_step::make_factors<float>(scalars, beta1, beta2, eps);
    cpu::parallel_for(count, 16384, [&](int64_t begin, int64_t end) {
      step_range(factors, io, narrow, begin, end);
    });
  });
}

}  // namespace

extern const KernelDef adamw_split_cpu;
const KernelDef adamw_split_cpu = {.op = "adamw_split", .create = create};

}  // namespace wam
