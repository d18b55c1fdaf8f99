#include "wam/kernels/cuda/attention_wide.h"

#include <cublasLt.h>

#include <string>

#include "wam/base/error.h"
#include "wam/kernels/cuda/support.h"

namespace wam::cuda {
namespace {

void check_lt(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(
      {.where = what,
       .what = "cuBLASLt reports an error",
       .got = cublasLtGetStatusString(status),
       .remedy = "Check the driver and that no other process holds the memory of the GPU."});
}

cublasLtHandle_t handle() {
  static const cublasLtHandle_t made = [] {
    cublasLtHandle_t h = nullptr;
    check_lt(cublasLtCreate(&h), "cublasLtCreate");
    return h;
  }();
  return made;
}

// Column-major, as cuBLASLt has it: `rows` x `columns`, elements between columns and matrices.
struct MatrixSpec {
  cudaDataType_t type;
  int64_t rows, columns, pitch, between;
};

// d = alpha op(a) b for a batch of matrices; the algorithm is the first that cuBLASLt names.
class BatchedProduct {
 public:
  BatchedProduct(bool transpose_a, const MatrixSpec& a, const MatrixSpec& b, const MatrixSpec& d,
                 int64_t batch) {
    check_lt(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
             "cublasLtMatmulDescCreate");
    const cublasOperation_t op = transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    check_lt(
        cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &op, sizeof op),
        "cublasLtMatmulDescSetAttribute");
    make(&a_, a, batch);
    make(&b_, b, batch);
    make(&d_, d, batch);
    choose();
  }
  ~BatchedProduct() {
    cublasLtMatrixLayoutDestroy(a_);
    cublasLtMatrixLayoutDestroy(b_);
    cublasLtMatrixLayoutDestroy(d_);
    cublasLtMatmulDescDestroy(operation_);
  }
  BatchedProduct(const BatchedProduct&) = delete;
  BatchedProduct& operator=(const BatchedProduct&) = delete;

  void run(float alpha, const void* a, const void* b, void* d, void* workspace,
           cudaStream_t stream) const {
    const float zero = 0;
    check_lt(cublasLtMatmul(handle(), operation_, &alpha, a, a_, b, b_, &zero, d, d_, d, d_,
                            &algorithm_, workspace, static_cast<size_t>(kGemmWorkspace), stream),
             "cublasLtMatmul of attention");
  }

 private:
  static void make(cublasLtMatrixLayout_t* layout, const MatrixSpec& m, int64_t batch) {
    check_lt(cublasLtMatrixLayoutCreate(layout, m.type, static_cast<uint64_t>(m.rows),
                                        static_cast<uint64_t>(m.columns), m.pitch),
             "cublasLtMatrixLayoutCreate");
    const auto count = static_cast<int32_t>(batch);
    check_lt(cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                              sizeof count),
             "cublasLtMatrixLayoutSetAttribute");
    check_lt(cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                              &m.between, sizeof m.between),
             "cublasLtMatrixLayoutSetAttribute");
  }

  void choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    check_lt(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const auto bytes = static_cast<size_t>(kGemmWorkspace);
    check_lt(cublasLtMatmulPreferenceSetAttribute(
                 preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes),
             "cublasLtMatmulPreferenceSetAttribute");
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle(), operation_, a_, b_, d_, d_, preference, 1, &result, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    check_lt(status, "cublasLtMatmulAlgoGetHeuristic of attention");
    WAM_CHECK(count > 0) << "cuBLASLt has no algorithm for attention's products";
    algorithm_ = result.algo;
  }

  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace

struct WideAttention::State {
  State(const WideAttentionSizes& z, float factor)
      : sizes(z),
        scale(factor),
        pitch(wide_attention_pitch(z)),
        together(wide_attention_together(z)),
        scores(true, rows_of(z), rows_of(z),
               {CUDA_R_32F, z.length, z.length, pitch, z.length * pitch}, together),
        sums(false, rows_of(z), {CUDA_R_16BF, z.length, z.length, 2 * pitch, 2 * z.length * pitch},
             {CUDA_R_16BF, z.d, z.length, z.d, z.length * z.d}, together) {}

  // Queries, keys or values.
  static MatrixSpec rows_of(const WideAttentionSizes& z) {
    return {CUDA_R_16BF, z.d, z.length, 3 * z.d, 3 * z.d * z.length};
  }

  WideAttentionSizes sizes;
  float scale;
  int64_t pitch, together;
  BatchedProduct scores, sums;
};

WideAttention::WideAttention(const WideAttentionSizes& sizes, float scale)
    : state_(std::make_unique<State>(sizes, scale)) {}
WideAttention::~WideAttention() = default;

void WideAttention::run(const void* qkv, void* out, float* lse, void* workspace,
                        cudaStream_t stream) const {
  const State& s = *state_;
  const WideAttentionSizes& z = s.sizes;
  auto* scores = static_cast<float*>(workspace);
  void* scratch = static_cast<std::byte*>(workspace) + wide_attention_score_bytes(z);
  for (int64_t first = 0; first < z.batch; first += s.together) {
    const std::byte* q = static_cast<const std::byte*>(qkv) + first * z.length * 3 * z.d * 2;
    std::byte* y = static_cast<std::byte*>(out) + first * z.length * z.d * 2;
    s.scores.run(s.scale, q + z.d * 2, q, scores, scratch, stream);
    launch_softmax_rows({s.together * z.length, z.length, s.pitch}, scores, lse + first * z.length,
                        stream);
    s.sums.run(1.0f, q + 2 * z.d * 2, scores, y, scratch, stream);
  }
}

}  // namespace wam::cuda
