#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

// Rows are summed in blocks of fixed size, then the blocks in order: a result that does not depend
// on the number of threads, with rounding of log order rather than linear.
constexpr int64_t kBlockRows = 64;
constexpr int64_t kColumns = 256;

template <typename T>
void sum_columns(const T* x, int64_t rows, int64_t period, int64_t begin, int64_t end, T* out) {
  T total[kColumns] = {};
  for (int64_t block = 0; block < rows; block += kBlockRows) {
    T partial[kColumns] = {};
    for (int64_t row = block; row < std::min(rows, block + kBlockRows); ++row) {
      for (int64_t i = begin; i < end; ++i) partial[i - begin] += x[row * period + i];
    }
    for (int64_t i = 0; i < end - begin; ++i) total[i] += partial[i];
  }
  for (int64_t i = begin; i < end; ++i) out[i] = total[i - begin];
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t period = s.outputs[0].shape.num_elements();
  const int64_t rows = period == 0 ? 0 : s.inputs[0].shape.num_elements() / period;
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      cpu::parallel_for((period + kColumns - 1) / kColumns, 1, [&](int64_t first, int64_t last) {
        for (int64_t chunk = first; chunk < last; ++chunk) {
          const int64_t begin = chunk * kColumns;
          sum_columns(io.in<T>(0), rows, period, begin, std::min(period, begin + kColumns),
                      io.out<T>(0));
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef sum_rows_cpu;
const KernelDef sum_rows_cpu = {.op = "sum_rows", .create = create};

}  // namespace wam
