// C = alpha op(A) op(B) + beta C, row-major, op(A) [m, k], op(B) [k, n]. float: oneDNN on tiles of C
// whose sizes depend on m and n alone, one thread a tile: the bits do not depend on the number of
// threads. double: plain loops, for gradient checks.
#pragma once

#include <cstdint>

namespace wam::cpu {

struct GemmShape {
  int64_t m, n, k;
  bool trans_a = false, trans_b = false;
};

// Leading dimensions are those of the stored (not transposed) matrices.
void gemm(const GemmShape& shape, float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
          float beta, float* c, int64_t ldc);
void gemm(const GemmShape& shape, double alpha, const double* a, int64_t lda, const double* b,
          int64_t ldb, double beta, double* c, int64_t ldc);

// The same on the calling thread alone, for use inside a parallel loop.
void gemm_serial(const GemmShape& shape, float alpha, const float* a, int64_t lda, const float* b,
                 int64_t ldb, float beta, float* c, int64_t ldc);
void gemm_serial(const GemmShape& shape, double alpha, const double* a, int64_t lda, const double* b,
                 int64_t ldb, double beta, double* c, int64_t ldc);

}  // namespace wam::cpu
