#include "wam/kernels/cuda/linear.h"

#include "wam/kernels/cuda/reductions.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace cuda {

LinearSizes linear_sizes(const KernelSignature& s) {
  const bool kn = s.attrs.flag("kn");
  const Shape& w = s.inputs[1].shape;
  return {s.inputs[0].shape.num_rows(), kn ? w[1] : w[0], kn ? w[0] : w[1], kn, s.inputs[0].dtype};
}

GemmSpec forward_spec(const LinearSizes& z, GemmSpec::Epilogue epilogue) {
  return {.m = z.n,
          .n = z.rows,
          .k = z.k,
          .trans_a = !z.kn,
          .trans_b = false,
          .lda = z.kn ? z.n : z.k,
          .ldb = z.k,
          .in = z.dtype,
          .out = z.dtype,
          .epilogue = epilogue};
}

GemmSpec dgrad_spec(const LinearSizes& z, GemmSpec::Epilogue epilogue) {
  return {.m = z.k,
          .n = z.rows,
          .k = z.n,
          .trans_a = z.kn,
          .trans_b = false,
          .lda = z.kn ? z.n : z.k,
          .ldb = z.n,
          .in = z.dtype,
          .out = z.dtype,
          .epilogue = epilogue};
}

}  // namespace cuda

namespace {

using cuda::Gemm;
using cuda::GemmSpec;

struct ProductKernel : Kernel, cuda::Tunable {
  explicit ProductKernel(const GemmSpec& spec) : gemm(spec) {}
  bool tune(void* scratch, int64_t bytes, cudaStream_t stream) override {
    return gemm.tune(scratch, bytes, stream);
  }
  const cuda::Gemm& product() const override { return gemm; }
  Gemm gemm;
};

struct LinearKernel final : ProductKernel {
  using ProductKernel::ProductKernel;
  void run(const KernelIo& io) override {
    const bool bias = gemm.spec().epilogue == GemmSpec::Epilogue::kBias;
    gemm.run({.a = io.inputs[1],
              .b = io.inputs[0],
              .d = io.outputs[0],
              .bias = bias ? io.inputs[2] : nullptr,
              .workspace = io.workspace},
             cuda::stream_of(io));
  }
};

std::unique_ptr<Kernel> create_linear(const KernelSignature& s) {
  const auto epilogue =
      s.inputs.size() == 3 ? GemmSpec::Epilogue::kBias : GemmSpec::Epilogue::kNone;
  return std::make_unique<LinearKernel>(cuda::forward_spec(cuda::linear_sizes(s), epilogue));
}

std::unique_ptr<Kernel> create_dgrad(const KernelSignature& s) {
  return std::make_unique<LinearKernel>(
      cuda::dgrad_spec(cuda::linear_sizes(s), GemmSpec::Epilogue::kNone));
}

// dW and, read from dy on its own (cheaper than in the product's epilogue), db.
struct WgradKernel final : ProductKernel {
  WgradKernel(const GemmSpec& spec, const cuda::ColumnSums& sums, bool kn)
      : ProductKernel(spec), bias(sums), kn(kn) {}
  void run(const KernelIo& io) override {
    const cudaStream_t stream = cuda::stream_of(io);
    const void *dy = io.inputs[0], *x = io.inputs[1];
    void* dw = io.outputs[0];
    const auto bytes =
        static_cast<size_t>(gemm.spec().m * gemm.spec().n * size_bytes(gemm.spec().out));
    if (accumulate && io.inputs[2] != dw) {
      cuda::check(cudaMemcpyAsync(dw, io.inputs[2], bytes, cudaMemcpyDeviceToDevice, stream),
                  "copy of the sums so far");
    }
    if (rows > 0) {
      gemm.run({.a = kn ? dy : x, .b = kn ? x : dy, .d = dw, .workspace = io.workspace}, stream);
    } else if (!accumulate) {
      cuda::check(cudaMemsetAsync(dw, 0, bytes, stream), "no rows");
    }
    if (!has_bias) return;
    cuda::ColumnSums sums = bias;
    sums.x = dy;
    sums.out = io.outputs[1];
    sums.accumulator = accumulate ? io.in<float>(3) : nullptr;
    sums.workspace = static_cast<std::byte*>(io.workspace) + cuda::kGemmWorkspace;
    cuda::launch_column_sums(sums, stream);
  }
  cuda::ColumnSums bias;
  bool kn, has_bias = false, accumulate = false;
  int64_t rows = 0;
};

std::unique_ptr<Kernel> create_wgrad(const KernelSignature& s) {
  const bool kn = s.attrs.flag("kn");
  const int64_t rows = s.inputs[0].shape.num_rows();
  const int64_t n = s.inputs[0].shape[-1], k = s.inputs[1].shape[-1];
  WAM_CHECK(s.outputs[0].dtype == DType::kF32) << "weight gradients are f32 on CUDA";
  // Column-major dW^T [k, n] = x^T dy, or dW [n, k] = dy^T x stored [k, n].
  const GemmSpec spec{.m = kn ? n : k,
                      .n = kn ? k : n,
                      .k = std::max<int64_t>(rows, 1),
                      .trans_a = false,
                      .trans_b = true,
                      .lda = kn ? n : k,
                      .ldb = kn ? k : n,
                      .in = s.inputs[0].dtype,
                      .out = DType::kF32,
                      .accumulate = s.attrs.flag("accumulate")};
  auto kernel = std::make_unique<WgradKernel>(
      spec, cuda::ColumnSums{.dtype = s.inputs[0].dtype, .rows = rows, .columns = n}, kn);
  kernel->has_bias = s.attrs.flag("bias");
  kernel->accumulate = spec.accumulate;
  kernel->rows = rows;
  return kernel;
}

}  // namespace

extern const KernelDef linear_cuda, linear_dgrad_cuda, linear_wgrad_cuda;
const KernelDef linear_cuda = {.op = "linear", .create = create_linear};
const KernelDef linear_dgrad_cuda = {.op = "linear_dgrad", .create = create_dgrad};
const KernelDef linear_wgrad_cuda = {.op = "linear_wgrad", .create = create_wgrad};

}  // namespace wam
