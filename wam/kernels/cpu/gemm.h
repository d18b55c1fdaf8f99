// C = alpha op(A) op(B) + beta C, row-major, op(A) [m, k], op(B) [k, n]. float: oneDNN on tiles of
// C whose sizes depend on m and n alone, one thread a tile: the bits do not depend on the number of
// threads. double: plain loops, for gradient checks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wam::cpu {

struct GemmShape {
  int64_t m, n, k;
  bool trans_a = false, trans_b = false;
};

// C = op(A) op(B) + beta C. Leading dimensions are those of the stored (not transposed) matrices.
template <typename T>
struct GemmOperands {
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T* c;
  int64_t ldc;
  T alpha = T{1}, beta = T{0};
};

// A piece of C.
struct GemmTile {
  int64_t row, rows, col, cols;
};

// How C is cut: an even number of row tiles of at most 256 rows where there are rows enough, so
// that two threads get equal shares; otherwise along the columns. Measured on rows of 500 to 4000
// and widths of 192 to 1024: within 5 % of one undivided product.
struct GemmTiling {
  int64_t tile_rows, tile_cols, row_tiles, col_tiles;
};
GemmTiling gemm_tiling(int64_t m, int64_t n);

// On the calling thread alone, for use inside a parallel loop.
void gemm_serial(const GemmShape& shape, const GemmOperands<float>& operands);
void gemm_serial(const GemmShape& shape, const GemmOperands<double>& operands);

// The tile of C that `tile` names, by the calling thread.
template <typename T>
void gemm_tile(const GemmShape& s, const GemmOperands<T>& o, const GemmTile& tile) {
  GemmOperands<T> part = o;
  part.a += s.trans_a ? tile.row : tile.row * o.lda;
  part.b += s.trans_b ? tile.col * o.ldb : tile.col;
  part.c += tile.row * o.ldc + tile.col;
  gemm_serial({tile.rows, tile.cols, s.k, s.trans_a, s.trans_b}, part);
}

// After a tile of C is done, epilogue(tile) runs on the same thread, while the tile is in its
// cache.
template <typename T, typename Epilogue>
void gemm(const GemmShape& s, const GemmOperands<T>& operands, const Epilogue& epilogue) {
  const GemmTiling tiling = gemm_tiling(s.m, s.n);
#pragma omp parallel for schedule(static) collapse(2)
  for (int64_t i = 0; i < tiling.row_tiles; ++i) {
    for (int64_t j = 0; j < tiling.col_tiles; ++j) {
      const int64_t row = i * tiling.tile_rows, col = j * tiling.tile_cols;
      const GemmTile tile{row, std::min(tiling.tile_rows, s.m - row), col,
                          std::min(tiling.tile_cols, s.n - col)};
      gemm_tile(s, operands, tile);
      epilogue(tile);
    }
  }
}

template <typename T>
void gemm(const GemmShape& s, const GemmOperands<T>& operands) {
  gemm(s, operands, [](const GemmTile&) {});
}

// Positional forms.
template <typename T>
void gemm(const GemmShape& s, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb, T beta,
          T* c, int64_t ldc) {
  gemm(s, GemmOperands<T>{a, lda, b, ldb, c, ldc, alpha, beta});
}
template <typename T>
void gemm_serial(const GemmShape& s, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
                 T beta, T* c, int64_t ldc) {
  gemm_serial(s, GemmOperands<T>{a, lda, b, ldb, c, ldc, alpha, beta});
}

}  // namespace wam::cpu
