// Matrix products by cuBLASLt with their epilogues, for the linear ops. A product's algorithm is
// looked up in the process-wide AlgorithmTable, else it is the first of cuBLASLt's list: the same
// choice in every run. Tuning times the list on scratch memory, candidate by candidate in rounds,
// with a cold cache, and enters the first or one that is clearly faster in the table, which a run
// stores and restores, since other tiles may give other bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "wam/kernels/cuda/workspace.h"
#include "wam/tensor/dtype.h"

namespace wam::cuda {

// Column-major: d [m, n] = op(a) [m, k] op(b) [k, n] (+ d with `accumulate`).
struct GemmSpec {
  enum class Epilogue : uint8_t {
    kNone,
    kBias,      // + bias[m], of the input type
    kGelu,      // aux = the product; d = gelu_tanh(aux)
    kGeluBias,  // aux = product + bias; d = gelu_tanh(aux)
    kGeluGrad,  // d = gelu_tanh_grad(product, aux)
  };
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  int64_t lda = 0, ldb = 0;
  DType in = DType::kBF16, out = DType::kBF16;
  Epilogue epilogue = Epilogue::kNone;
  bool accumulate = false;
  std::string key() const;  // names the product in the table
};

struct GemmOperands {
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  void* aux = nullptr;  // read by kGeluGrad, written by kGelu and kGeluBias; as d
  void* workspace = nullptr;
};

// Whether cuBLASLt has the epilogues that read or write aux for this output; else the caller runs
// GELU on its own.
bool has_aux_epilogue(DType dtype, int64_t m);

class Gemm {
 public:
  explicit Gemm(const GemmSpec& spec);
  ~Gemm();
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;
  void run(const GemmOperands& operands, cudaStream_t stream) const;
  // Times the candidates on [scratch, scratch + bytes), which it overwrites; false if that is too
  // small. Blocks.
  bool tune(void* scratch, int64_t bytes, cudaStream_t stream);
  // Microseconds of the last tuning's best and of the first candidate; 0 before.
  double best_us() const;
  double first_us() const;
  int best_place() const;  // of the best in the list
  const GemmSpec& spec() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A kernel that holds products offers them to the tuner.
class Tunable {
 public:
  virtual ~Tunable() = default;
  virtual bool tune(void* scratch, int64_t bytes, cudaStream_t stream) = 0;
  virtual const Gemm& product() const = 0;
};

// Whether `second` is clearly faster than `first`: run in turns, each with a cold cache, as tuning
// does. `scratch` of cold_bytes() is overwritten.
bool is_clearly_faster(const std::function<void()>& first, const std::function<void()>& second,
                       void* scratch, cudaStream_t stream);
int64_t cold_bytes();

// Decisions beside algorithms, kept in the same table: whether `key` was noted.
bool is_noted(const std::string& key);
void note(const std::string& key);

// The table and the first choices of products it lacks, as text, one "key hex" a line under a header that names library version and device.
// parse throws DataError for text it cannot use; entries made for another library or device are not
// used, with a warning.
std::string format_algorithms();
void parse_algorithms(std::string_view text);

// Random bits that read as moderate numbers in f32 and bf16: what products are timed on.
void fill_for_timing(void* p, int64_t bytes, cudaStream_t stream);
// For shapes cuBLASLt has no algorithm for: one thread an element.
void launch_plain_gemm(const GemmSpec& spec, const GemmOperands& operands, cudaStream_t stream);

}  // namespace wam::cuda
