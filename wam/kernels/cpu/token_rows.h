// Work on tokens whose parameters are rows of a table: x [B, L, D], table [B, T, D], index [L].
// Shared by modulate, gate and residual_norm.
#pragma once

#include "wam/kernels/cpu/column_sums.h"

namespace wam::cpu {

struct TokenSizes {
  int64_t batch, length, table_rows, width;
  int64_t rows() const { return batch * length; }
};

inline TokenSizes token_sizes(const Shape& x, const Shape& table) {
  return {x[0], x[1], table[1], x[2]};
}

// The table row of token `row` of B * L.
template <typename T>
const T* table_row(const TokenSizes& z, const T* table, const int32_t* index, int64_t row) {
  return table + (row / z.length * z.table_rows + index[row % z.length]) * z.width;
}

// sums[b, t, i] = sum of term(row, i) over the tokens of b with index t. Tokens go in blocks of 64,
// and inside a block each run of one index has a partial sum: a fixed order for any thread count.
template <typename T, typename Term>
void sum_tokens(const TokenSizes& z, const int32_t* index, const Term& term, T* sums) {
  const int64_t chunks = (z.width + kSumColumns - 1) / kSumColumns;
  parallel_for(z.batch * chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t b = task / chunks, begin = task % chunks * kSumColumns;
      const int64_t columns = std::min(z.width - begin, kSumColumns);
      T* out = sums + b * z.table_rows * z.width + begin;
      for (int64_t t = 0; t < z.table_rows; ++t) std::fill_n(out + t * z.width, columns, T{0});
      for (int64_t l = 0; l < z.length;) {
        const int64_t stop = std::min(z.length, (l / kSumBlockRows + 1) * kSumBlockRows);
        const int32_t t = index[l];
        T partial[kSumColumns] = {};
        for (; l < stop && index[l] == t; ++l) {
          const int64_t row = b * z.length + l;
          if (columns == kSumColumns) {
            for (int64_t i = 0; i < kSumColumns; ++i) partial[i] += term(row, begin + i);
          } else {
            for (int64_t i = 0; i < columns; ++i) partial[i] += term(row, begin + i);
          }
        }
        for (int64_t i = 0; i < columns; ++i) out[t * z.width + i] += partial[i];
      }
    }
  });
}

// f(row) for every token.
template <typename F>
void for_tokens(const TokenSizes& z, const F& f) {
  parallel_for(z.rows(), row_grain(z.width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) f(row);
  });
}

}  // namespace wam::cpu
