// Sums down columns: blocks of 64 rows, then the blocks in order. The result depends neither on the
// number of threads nor on how columns are shared out, and rounding grows with rows / 64 + 64.
#pragma once

#include "wam/kernels/cpu/support.h"

namespace wam::cpu {

constexpr int64_t kSumBlockRows = 64;
constexpr int64_t kSumColumns = 32;

// store(column, sum over rows of term(row, column)) for columns in [begin, end), at most
// kSumColumns.
template <typename T, typename Term, typename Store>
void sum_some_columns(int64_t rows, int64_t begin, int64_t end, const Term& term,
                      const Store& store) {
  T total[kSumColumns] = {};
  for (int64_t block = 0; block < rows; block += kSumBlockRows) {
    T partial[kSumColumns] = {};
    const int64_t stop = std::min(rows, block + kSumBlockRows);
    if (end - begin == kSumColumns) {  // a constant count vectorises into registers
      for (int64_t row = block; row < stop; ++row) {
        for (int64_t i = 0; i < kSumColumns; ++i) partial[i] += term(row, begin + i);
      }
    } else {
      for (int64_t row = block; row < stop; ++row) {
        for (int64_t i = 0; i < end - begin; ++i) partial[i] += term(row, begin + i);
      }
    }
    for (int64_t i = 0; i < kSumColumns; ++i) total[i] += partial[i];
  }
  for (int64_t i = begin; i < end; ++i) store(i, total[i - begin]);
}

// The same over all columns, shared out to threads.
template <typename T, typename Term, typename Store>
void sum_columns(int64_t rows, int64_t columns, const Term& term, const Store& store) {
  parallel_for((columns + kSumColumns - 1) / kSumColumns, 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      const int64_t begin = chunk * kSumColumns;
      sum_some_columns<T>(rows, begin, std::min(columns, begin + kSumColumns), term, store);
    }
  });
}

}  // namespace wam::cpu
