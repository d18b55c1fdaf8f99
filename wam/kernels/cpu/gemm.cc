#include "wam/kernels/cpu/gemm.h"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>

#include "wam/base/check.h"

namespace wam::cpu {
namespace {

// Tiles of C: large enough for oneDNN's inner kernels, small enough to share out.
constexpr int64_t kTileRows = 256;
constexpr int64_t kTileCols = 512;

template <typename T>
void tiled(const GemmShape& s, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c,
           int64_t ldc) {
  // Narrow products are cut finer along the long side, so that two threads have work.
  const int64_t rows = s.n <= kTileCols && s.m < 4 * kTileRows ? kTileRows / 4 : kTileRows;
  const int64_t row_tiles = (s.m + rows - 1) / rows, col_tiles = (s.n + kTileCols - 1) / kTileCols;
#pragma omp parallel for schedule(static) collapse(2)
  for (int64_t i = 0; i < row_tiles; ++i) {
    for (int64_t j = 0; j < col_tiles; ++j) {
      const int64_t row = i * rows, col = j * kTileCols;
      const GemmShape tile{std::min(rows, s.m - row), std::min(kTileCols, s.n - col), s.k, s.trans_a,
                           s.trans_b};
      gemm_serial(tile, alpha, a + (s.trans_a ? row : row * lda), lda, b + (s.trans_b ? col * ldb : col),
                  ldb, beta, c + row * ldc + col, ldc);
    }
  }
}

}  // namespace

void gemm_serial(const GemmShape& s, float alpha, const float* a, int64_t lda, const float* b,
                 int64_t ldb, float beta, float* c, int64_t ldc) {
  if (s.m == 0 || s.n == 0) return;
  const dnnl_status_t status = dnnl_sgemm(s.trans_a ? 'T' : 'N', s.trans_b ? 'T' : 'N', s.m, s.n, s.k,
                                          alpha, a, lda, b, ldb, beta, c, ldc);
  WAM_CHECK(status == dnnl_success) << "dnnl_sgemm returned " << status;
}

void gemm_serial(const GemmShape& s, double alpha, const double* a, int64_t lda, const double* b,
                 int64_t ldb, double beta, double* c, int64_t ldc) {
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < s.k; ++p) {
        sum += (s.trans_a ? a[p * lda + i] : a[i * lda + p]) *
               (s.trans_b ? b[j * ldb + p] : b[p * ldb + j]);
      }
      double& out = c[i * ldc + j];
      out = alpha * sum + (beta == 0 ? 0 : beta * out);
    }
  }
}

void gemm(const GemmShape& shape, float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
          float beta, float* c, int64_t ldc) {
  tiled(shape, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm(const GemmShape& shape, double alpha, const double* a, int64_t lda, const double* b,
          int64_t ldb, double beta, double* c, int64_t ldc) {
  tiled(shape, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace wam::cpu
