#include "wam/kernels/cpu/gemm.h"

#include <dnnl.h>

#include "wam/base/check.h"
#include "wam/kernels/cpu/support.h"

namespace wam::cpu {
namespace {

// Below, oneDNN's packing of operands weighs too much; above, tiles are too few to share out.
constexpr int64_t kMaxTileRows = 256, kMaxTileCols = 512;
constexpr int64_t kMinRowsToCut = 64;
constexpr int64_t kMultiple = 16;  // a tile's sizes, so that inner kernels run full

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Size of `parts` nearly equal pieces of `size`.
int64_t piece(int64_t size, int64_t parts) {
  return divide_up(divide_up(size, parts), kMultiple) * kMultiple;
}

// C = beta C: the product of nothing, which oneDNN leaves undone.
void scale_rows(const GemmShape& s, const GemmOperands<float>& o) {
  for (int64_t i = 0; i < s.m; ++i) {
    float* c = o.c + i * o.ldc;
    for (int64_t j = 0; j < s.n; ++j) c[j] = o.beta == 0 ? 0 : o.beta * c[j];
  }
}

// c[j] of one row of the result; B is read along its rows, so that the loops vectorise.
void gemm_row(const GemmShape& s, const GemmOperands<double>& o, int64_t i) {
  double* c = o.c + i * o.ldc;
  const auto a_at = [&](int64_t p) { return s.trans_a ? o.a[p * o.lda + i] : o.a[i * o.lda + p]; };
  if (s.trans_b) {
    for (int64_t j = 0; j < s.n; ++j) {
      const double* b = o.b + j * o.ldb;
      const double sum = ordered_sum<double>(s.k, [&](int64_t p) { return a_at(p) * b[p]; });
      c[j] = o.alpha * sum + (o.beta == 0 ? 0 : o.beta * c[j]);
    }
    return;
  }
  for (int64_t j = 0; j < s.n; ++j) c[j] = o.beta == 0 ? 0 : o.beta * c[j];
  for (int64_t p = 0; p < s.k; ++p) {
    const double a = o.alpha * a_at(p);
    const double* b = o.b + p * o.ldb;
    for (int64_t j = 0; j < s.n; ++j) c[j] += a * b[j];
  }
}

}  // namespace

GemmTiling gemm_tiling(int64_t m, int64_t n) {
  if (m == 0 || n == 0) return {1, 1, 0, 0};
  const int64_t row_parts = m < kMinRowsToCut ? 1 : 2 * divide_up(m, 2 * kMaxTileRows);
  const int64_t col_parts =
      row_parts == 1 ? 2 * divide_up(n, 2 * kMaxTileCols) : divide_up(n, kMaxTileCols);
  const int64_t rows = piece(m, row_parts), cols = piece(n, col_parts);
  return {rows, cols, divide_up(m, rows), divide_up(n, cols)};
}

void gemm_serial(const GemmShape& s, const GemmOperands<float>& o) {
  if (s.m == 0 || s.n == 0) return;
  if (s.k == 0) return scale_rows(s, o);
  const dnnl_status_t status = dnnl_sgemm(s.trans_a ? 'T' : 'N', s.trans_b ? 'T' : 'N', s.m, s.n,
                                          s.k, o.alpha, o.a, o.lda, o.b, o.ldb, o.beta, o.c, o.ldc);
  WAM_CHECK(status == dnnl_success) << "dnnl_sgemm returned " << status;
}

void gemm_serial(const GemmShape& s, const GemmOperands<double>& o) {
  for (int64_t i = 0; i < s.m; ++i) gemm_row(s, o, i);
}

}  // namespace wam::cpu
