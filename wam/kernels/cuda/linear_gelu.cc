#include "wam/kernels/cuda/elementwise.h"
#include "wam/kernels/cuda/linear.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

using cuda::GemmSpec;

using Epilogue = GemmSpec::Epilogue;

Epilogue plain(bool bias) { return bias ? Epilogue::kBias : Epilogue::kNone; }
Epilogue with_gelu(bool bias) { return bias ? Epilogue::kGeluBias : Epilogue::kGelu; }

// The activation rides in the product's epilogue, or, where cuBLASLt has none or a tuning found it
// slower (at some shapes its best kernels lack it), is a kernel of its own.
struct LinearGeluKernel final : Kernel, cuda::Tunable {
  LinearGeluKernel(const cuda::LinearSizes& sizes, bool bias, bool fused)
      : sizes(sizes),
        bias(bias),
        fused(fused),
        gemm(cuda::forward_spec(sizes, fused ? with_gelu(bias) : plain(bias))) {}

  void run(const KernelIo& io) override {
    const cudaStream_t stream = cuda::stream_of(io);
    gemm.run({.a = io.inputs[1],
              .b = io.inputs[0],
              .d = io.outputs[fused ? 0 : 1],
              .bias = bias ? io.inputs[2] : nullptr,
              .aux = fused ? io.outputs[1] : nullptr,
              .workspace = io.workspace},
             stream);
    if (!fused) activate(io.outputs[1], io.outputs[0], stream);
  }

  void activate(const void* x, void* y, cudaStream_t stream) const {
    const GemmSpec& z = gemm.spec();
    cuda::launch_unary({cuda::Unary::kGeluTanh, z.out, z.m * z.n}, x, y, stream);
  }

  bool tune(void* scratch, int64_t bytes, cudaStream_t stream) override {
    if (!gemm.tune(scratch, bytes, stream)) return false;
    const std::string key = apart_key(gemm.spec());
    if (!fused || gemm.spec().m * gemm.spec().n == 0) return true;
    cuda::Gemm apart(cuda::forward_spec(sizes, plain(bias)));
    // Tuned in this run: the choice is still to be made.
    if (gemm.first_us() > 0 && apart.tune(scratch, bytes, stream) &&
        is_faster(apart, scratch, bytes, stream)) {
      cuda::note(key);
    }
    if (!cuda::is_noted(key)) return true;
    gemm = std::move(apart);
    fused = false;
    return true;
  }

  // Whether product and activation apart are faster than in one.
  bool is_faster(const cuda::Gemm& apart, void* scratch, int64_t bytes, cudaStream_t stream) const {
    auto* next = static_cast<std::byte*>(scratch);
    const auto take = [&](int64_t elements) {
      std::byte* begin = next;
      next += cuda::round_up(elements * size_bytes(sizes.dtype), 256);
      return begin;
    };
    cuda::GemmOperands o{.a = take(sizes.n * sizes.k),
                         .b = take(sizes.rows * sizes.k),
                         .d = take(sizes.rows * sizes.n),
                         .bias = take(sizes.n),
                         .aux = take(sizes.rows * sizes.n)};
    o.workspace = next;
    std::byte* const flushed = next + cuda::kGemmWorkspace;
    if (flushed + cuda::cold_bytes() > static_cast<std::byte*>(scratch) + bytes) return false;
    cuda::fill_for_timing(scratch, next - static_cast<std::byte*>(scratch), stream);
    const auto in_one = [&] { gemm.run(o, stream); };
    const auto in_two = [&] {
      cuda::GemmOperands plain_operands = o;
      std::swap(plain_operands.d, plain_operands.aux);
      apart.run(plain_operands, stream);
      activate(o.aux, o.d, stream);
    };
    return cuda::is_clearly_faster(in_one, in_two, flushed, stream);
  }
  const cuda::Gemm& product() const override { return gemm; }

  static std::string apart_key(const GemmSpec& spec) { return spec.key() + "_apart"; }

  cuda::LinearSizes sizes;
  bool bias, fused;
  cuda::Gemm gemm;
};

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cuda::LinearSizes z = cuda::linear_sizes(s);
  const bool bias = s.inputs.size() == 3;
  const std::string key = LinearGeluKernel::apart_key(cuda::forward_spec(z, with_gelu(bias)));
  const bool fused = cuda::has_aux_epilogue(z.dtype, z.n) && !cuda::is_noted(key);
  return std::make_unique<LinearGeluKernel>(z, bias, fused);
}

}  // namespace

extern const KernelDef linear_gelu_cuda;
const KernelDef linear_gelu_cuda = {.op = "linear_gelu", .create = create};

}  // namespace wam
