#include "wam/kernels/cuda/elementwise.h"
#include "wam/kernels/cuda/linear.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

using cuda::GemmSpec;

// Where cuBLASLt has no such epilogue the gradient of GELU is a kernel of its own.
struct DgradGeluKernel final : Kernel, cuda::Tunable {
  DgradGeluKernel(const GemmSpec& spec, bool fused) : gemm(spec), fused(fused) {}
  void run(const KernelIo& io) override {
    const cudaStream_t stream = cuda::stream_of(io);
    gemm.run({.a = io.inputs[1],
              .b = io.inputs[0],
              .d = io.outputs[0],
              .aux = fused ? const_cast<void*>(io.inputs[2]) : nullptr,
              .workspace = io.workspace},
             stream);
    if (fused) return;
    const GemmSpec& z = gemm.spec();
    cuda::launch_binary({cuda::Binary::kGeluTanhGrad, z.out, z.m * z.n, z.m * z.n}, io.outputs[0],
                        io.inputs[2], io.outputs[0], stream);
  }
  bool tune(void* scratch, int64_t bytes, cudaStream_t stream) override {
    return gemm.tune(scratch, bytes, stream);
  }
  const cuda::Gemm& product() const override { return gemm; }
  cuda::Gemm gemm;
  bool fused;
};

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cuda::LinearSizes z = cuda::linear_sizes(s);
  const bool fused = cuda::has_aux_epilogue(z.dtype, z.k);
  const auto epilogue = fused ? GemmSpec::Epilogue::kGeluGrad : GemmSpec::Epilogue::kNone;
  return std::make_unique<DgradGeluKernel>(cuda::dgrad_spec(z, epilogue), fused);
}

}  // namespace

extern const KernelDef linear_dgrad_gelu_cuda;
const KernelDef linear_dgrad_gelu_cuda = {.op = "linear_dgrad_gelu", .create = create};

}  // namespace wam
