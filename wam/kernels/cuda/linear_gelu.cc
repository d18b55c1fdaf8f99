#include "wam/kernels/cuda/elementwise.h"
#include "wam/kernels/cuda/linear.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

using cuda::GemmSpec;

// Where cuBLASLt has no such epilogue the activation is a kernel of its own.
struct LinearGeluKernel final : Kernel, cuda::Tunable {
  LinearGeluKernel(const GemmSpec& spec, bool bias, bool fused)
      : gemm(spec), bias(bias), fused(fused) {}
  void run(const KernelIo& io) override {
    const cudaStream_t stream = cuda::stream_of(io);
    gemm.run({.a = io.inputs[1],
              .b = io.inputs[0],
              .d = io.outputs[fused ? 0 : 1],
              .bias = bias ? io.inputs[2] : nullptr,
              .aux = fused ? io.outputs[1] : nullptr,
              .workspace = io.workspace},
             stream);
    if (fused) return;
    const GemmSpec& z = gemm.spec();
    cuda::launch_unary({cuda::Unary::kGeluTanh, z.out, z.m * z.n}, io.outputs[1], io.outputs[0],
                       stream);
  }
  bool tune(void* scratch, int64_t bytes, cudaStream_t stream) override {
    return gemm.tune(scratch, bytes, stream);
  }
  cuda::Gemm gemm;
  bool bias, fused;
};

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cuda::LinearSizes z = cuda::linear_sizes(s);
  const bool bias = s.inputs.size() == 3, fused = cuda::has_aux_epilogue(z.dtype, z.n);
  using enum GemmSpec::Epilogue;
  const auto epilogue = fused ? (bias ? kGeluBias : kGelu) : (bias ? kBias : kNone);
  return std::make_unique<LinearGeluKernel>(cuda::forward_spec(z, epilogue), bias, fused);
}

}  // namespace

extern const KernelDef linear_gelu_cuda;
const KernelDef linear_gelu_cuda = {.op = "linear_gelu", .create = create};

}  // namespace wam
