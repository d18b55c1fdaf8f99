#include "wam/kernels/cuda/gemm.h"

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "wam/base/error.h"
#include "wam/base/log.h"
#include "wam/kernels/cuda/support.h"

namespace wam::cuda {
namespace {

using Algorithm = cublasLtMatmulAlgo_t;
constexpr int kCandidates = 16;
// Twice the largest cache.
constexpr int64_t kFlushBytes = int64_t{128} << 20;
// A choice other than the first must be faster by 1.5 % in the median, and in nine rounds of ten.
constexpr int kRounds = 20;
constexpr double kClearly = 0.985, kMostRounds = 0.9;

void check_lt(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(
      {.where = what,
       .what = "cuBLASLt reports an error",
       .got = cublasLtGetStatusString(status),
       .remedy = "Check the driver and that no other process holds the GPU's memory."});
}

cublasLtHandle_t handle() {
  static const cublasLtHandle_t made = [] {
    cublasLtHandle_t h = nullptr;
    check_lt(cublasLtCreate(&h), "cublasLtCreate");
    return h;
  }();
  return made;
}

cudaDataType_t data_type(DType dtype) {
  check_float(dtype);
  return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

std::string device_name() {
  int device = 0;
  cudaDeviceProp properties;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

struct Table {
  std::mutex mutex;
  std::map<std::string, Algorithm, std::less<>> entries;
  std::map<std::string, Algorithm, std::less<>> first;  // taken because there was no entry
};
Table& table() {
  static Table made;
  return made;
}

std::string header() {
  return fmt::format("cublasLt {} on {}", cublasLtGetVersion(), device_name());
}

std::string to_hex(const Algorithm& algorithm) {
  std::string text;
  for (const uint64_t word : algorithm.data) text += fmt::format("{:016x}", word);
  return text;
}

bool from_hex(std::string_view text, Algorithm& algorithm) {
  constexpr size_t kWords = std::size(decltype(Algorithm::data){});
  if (text.size() != kWords * 16) return false;
  for (size_t i = 0; i < kWords; ++i) {
    uint64_t word = 0;
    for (const char c : text.substr(i * 16, 16)) {
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (digit < 0) return false;
      word = word << 4 | static_cast<uint64_t>(digit);
    }
    algorithm.data[i] = word;
  }
  return true;
}

[[noreturn]] void fail_table(size_t line, std::string_view got) {
  throw DataError(
      {.where = fmt::format("table of product algorithms, line {}", line),
       .what = "the line cannot be read",
       .got = std::string(got.substr(0, 60)),
       .expected = "a product's key, a space, 128 hexadecimal digits",
       .remedy = "Remove the table; the run then chooses anew, and its bits may change."});
}

// Layouts and the operation, made once.
class Description {
 public:
  explicit Description(const GemmSpec& s) {
    check_lt(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
             "MatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, s.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, s.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue(s.epilogue));
    if (has_bias(s.epilogue)) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(s.in));
    if (has_aux(s.epilogue)) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.m);
    layout(&a, s.in, s.trans_a ? s.k : s.m, s.trans_a ? s.m : s.k, s.lda);
    layout(&b, s.in, s.trans_b ? s.n : s.k, s.trans_b ? s.k : s.n, s.ldb);
    layout(&d, s.out, s.m, s.n, s.m);
  }
  ~Description() {
    cublasLtMatrixLayoutDestroy(a);
    cublasLtMatrixLayoutDestroy(b);
    cublasLtMatrixLayoutDestroy(d);
    cublasLtMatmulDescDestroy(operation);
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check_lt(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
             "cublasLtMatmulDescSetAttribute");
  }
  static bool has_bias(GemmSpec::Epilogue e) {
    return e == GemmSpec::Epilogue::kBias || e == GemmSpec::Epilogue::kGeluBias;
  }
  static bool has_aux(GemmSpec::Epilogue e) {
    return e != GemmSpec::Epilogue::kNone && e != GemmSpec::Epilogue::kBias;
  }

  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;

 private:
  static cublasLtEpilogue_t epilogue(GemmSpec::Epilogue e) {
    switch (e) {
      case GemmSpec::Epilogue::kNone:
        return CUBLASLT_EPILOGUE_DEFAULT;
      case GemmSpec::Epilogue::kBias:
        return CUBLASLT_EPILOGUE_BIAS;
      case GemmSpec::Epilogue::kGelu:
        return CUBLASLT_EPILOGUE_GELU_AUX;
      case GemmSpec::Epilogue::kGeluBias:
        return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
      case GemmSpec::Epilogue::kGeluGrad:
        return CUBLASLT_EPILOGUE_DGELU;
    }
    return CUBLASLT_EPILOGUE_DEFAULT;
  }
  static void layout(cublasLtMatrixLayout_t* made, DType dtype, int64_t rows, int64_t columns,
                     int64_t stride) {
    check_lt(cublasLtMatrixLayoutCreate(made, data_type(dtype), static_cast<uint64_t>(rows),
                                        static_cast<uint64_t>(columns), stride),
             "cublasLtMatrixLayoutCreate");
  }
};

// What addresses are sure to be a multiple of, given rows of `stride` elements in 16-byte aligned
// buffers.
uint32_t alignment_of(DType dtype, int64_t stride) {
  const int64_t bytes = stride * size_bytes(dtype);
  return static_cast<uint32_t>(std::min<int64_t>(16, bytes & -bytes));
}

std::vector<Algorithm> candidates_of(const GemmSpec& s, const Description& description) {
  cublasLtMatmulPreference_t preference = nullptr;
  check_lt(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check_lt(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
             "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kGemmWorkspace));
  // Parts of a split sum are kept in f32: in place they would be added in any order, in the
  // output's type they would be rounded to bf16 one by one.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(s.in, s.lda));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(s.in, s.ldb));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(s.out, s.m));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(s.out, s.m));
  cublasLtMatmulHeuristicResult_t found[kCandidates];
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle(), description.operation, description.a, description.b, description.d, description.d,
      preference, kCandidates, found, &count);
  cublasLtMatmulPreferenceDestroy(preference);
  std::vector<Algorithm> result;
  if (status != CUBLAS_STATUS_SUCCESS) return result;
  for (int i = 0; i < count; ++i) {
    if (found[i].state == CUBLAS_STATUS_SUCCESS) result.push_back(found[i].algo);
  }
  return result;
}

// Runs of each candidate in turn, in rounds, so that all meet the same clocks and temperatures; the
// cache is filled with something else before each. Microseconds by candidate and round.
class Trials {
 public:
  Trials(size_t candidates, void* flushed, int64_t flush_bytes, cudaStream_t stream)
      : times_(candidates), flushed_(flushed), flush_bytes_(flush_bytes), stream_(stream) {
    for (cudaEvent_t& event : events_) check(cudaEventCreate(&event), "cudaEventCreate");
  }
  ~Trials() {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;

  // One more time of a candidate.
  void run(size_t candidate, const auto& call) {
    check(cudaMemsetAsync(flushed_, static_cast<int>(times_[candidate].size() & 0xff),
                          static_cast<size_t>(flush_bytes_), stream_),
          "emptying the cache");
    check(cudaEventRecord(events_[0], stream_), "cudaEventRecord");
    call();
    check(cudaEventRecord(events_[1], stream_), "cudaEventRecord");
    check(cudaEventSynchronize(events_[1]), "timing a product");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, events_[0], events_[1]), "cudaEventElapsedTime");
    times_[candidate].push_back(1e3 * static_cast<double>(ms));
  }
  double median(size_t candidate) const {
    std::vector<double> sorted = times_[candidate];
    std::ranges::sort(sorted);
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }
  // Share of the rounds in which `a` was faster than `b`.
  double wins(size_t a, size_t b) const {
    const size_t rounds = std::min(times_[a].size(), times_[b].size());
    size_t count = 0;
    for (size_t i = 0; i < rounds; ++i) count += times_[a][i] < times_[b][i] ? 1 : 0;
    return rounds == 0 ? 0 : static_cast<double>(count) / static_cast<double>(rounds);
  }
  // Clearly faster, so that noise does not decide.
  bool clearly(size_t a, size_t b) const {
    return median(a) < kClearly * median(b) && wins(a, b) >= kMostRounds;
  }
  void forget() {
    for (std::vector<double>& list : times_) list.clear();
  }

 private:
  std::vector<std::vector<double>> times_;
  void* flushed_;
  int64_t flush_bytes_;
  cudaStream_t stream_;
  cudaEvent_t events_[2] = {};
};

}  // namespace

std::string GemmSpec::key() const {
  return fmt::format("{}{}_{}x{}x{}_ld{}_{}_{}{}_e{}{}", trans_a ? 't' : 'n', trans_b ? 't' : 'n',
                     m, n, k, lda, ldb, name(in), name(out), static_cast<int>(epilogue),
                     accumulate ? "_acc" : "");
}

bool has_aux_epilogue(DType dtype, int64_t m) { return dtype == DType::kBF16 && m % 8 == 0; }

struct Gemm::State {
  explicit State(const GemmSpec& s) : spec(s) {
    if (s.m == 0 || s.n == 0) return;
    WAM_CHECK(s.k > 0) << "product with k = " << s.k;
    description = std::make_unique<Description>(s);
    candidates = candidates_of(s, *description);
    plain = candidates.empty();
    if (!plain) chosen = candidates.front();
    WAM_CHECK(!plain || !Description::has_aux(s.epilogue)) << "no algorithm for " << s.key();
    if (plain || take_from_table()) return;
    Table& known = table();
    const std::lock_guard lock(known.mutex);
    known.first[s.key()] = chosen;
  }

  // True if the table has the product and what it has can be used.
  bool take_from_table() {
    Table& known = table();
    const std::lock_guard lock(known.mutex);
    const auto found = known.entries.find(spec.key());
    if (found == known.entries.end() || !usable(found->second)) return false;
    chosen = found->second;
    return true;
  }

  bool usable(const Algorithm& algorithm) const {
    cublasLtMatmulHeuristicResult_t result;
    return cublasLtMatmulAlgoCheck(handle(), description->operation, description->a, description->b,
                                   description->d, description->d, &algorithm,
                                   &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= static_cast<size_t>(kGemmWorkspace);
  }

  cublasStatus_t multiply(const Algorithm& algorithm, const GemmOperands& o,
                          cudaStream_t stream) const {
    if (Description::has_bias(spec.epilogue)) {
      description->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias);
    }
    if (Description::has_aux(spec.epilogue)) {
      description->set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, o.aux);
    }
    const float one = 1, beta = spec.accumulate ? 1 : 0;
    return cublasLtMatmul(handle(), description->operation, &one, o.a, description->a, o.b,
                          description->b, &beta, o.d, description->d, o.d, description->d,
                          &algorithm, o.workspace, static_cast<size_t>(kGemmWorkspace), stream);
  }

  // The first of the list unless another is clearly faster.
  void choose(const GemmOperands& o, void* flushed, cudaStream_t stream) {
    constexpr int kQuick = 3;
    constexpr double kHopeless = 1.06;
    std::vector<size_t> left;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (multiply(candidates[i], o, stream) == CUBLAS_STATUS_SUCCESS) left.push_back(i);
    }
    WAM_CHECK(!left.empty()) << "no algorithm runs for " << spec.key();
    Trials trials(candidates.size(), flushed, kFlushBytes, stream);
    const auto rounds = [&](int count) {
      for (int round = 0; round < count; ++round) {
        for (const size_t i : left) trials.run(i, [&] { multiply(candidates[i], o, stream); });
      }
    };
    rounds(kQuick);
    const double first = trials.median(left.front());
    std::erase_if(
        left, [&](size_t i) { return i != left.front() && trials.median(i) > kHopeless * first; });
    trials.forget();
    rounds(kRounds);
    size_t best = left.front();
    first_us = trials.median(best);
    for (const size_t i : left) {
      if (trials.clearly(i, left.front()) && trials.median(i) < trials.median(best)) best = i;
    }
    // Among equals the first, so that another run chooses the same.
    constexpr double kEqual = 1.01;
    for (const size_t i : left) {
      if (best == left.front() || !trials.clearly(i, left.front())) continue;
      if (trials.median(i) > kEqual * trials.median(best)) continue;
      best = i;
      break;
    }
    best_us = trials.median(best);
    best_place = static_cast<int>(best);
    chosen = candidates[best];
  }

  GemmSpec spec;
  std::unique_ptr<Description> description;
  std::vector<Algorithm> candidates;
  Algorithm chosen{};
  bool plain = false;
  double best_us = 0, first_us = 0;
  int best_place = 0;
};

Gemm::Gemm(const GemmSpec& spec) : state_(std::make_unique<State>(spec)) {}
Gemm::~Gemm() = default;
Gemm::Gemm(Gemm&&) noexcept = default;
Gemm& Gemm::operator=(Gemm&&) noexcept = default;
double Gemm::best_us() const { return state_->best_us; }
double Gemm::first_us() const { return state_->first_us; }
int Gemm::best_place() const { return state_->best_place; }
const GemmSpec& Gemm::spec() const { return state_->spec; }

void Gemm::run(const GemmOperands& operands, cudaStream_t stream) const {
  const State& s = *state_;
  if (s.spec.m == 0 || s.spec.n == 0) return;
  if (s.plain) return launch_plain_gemm(s.spec, operands, stream);
  check_lt(s.multiply(s.chosen, operands, stream), "cublasLtMatmul");
}

bool Gemm::tune(void* scratch, int64_t bytes, cudaStream_t stream) {
  State& s = *state_;
  if (s.spec.m == 0 || s.spec.n == 0 || s.plain) return true;
  const GemmSpec& z = s.spec;
  if (s.take_from_table()) return true;
  auto* at = static_cast<std::byte*>(scratch);
  std::byte* const end = at + bytes;
  const auto take = [&](int64_t size) {
    std::byte* begin = at;
    at += round_up(size, 256);
    return begin;
  };
  GemmOperands o;
  o.workspace = take(kGemmWorkspace);
  o.a = take(z.m * z.k * size_bytes(z.in));
  o.b = take(z.n * z.k * size_bytes(z.in));
  o.d = take(z.m * z.n * size_bytes(z.out));
  if (Description::has_aux(z.epilogue)) o.aux = take(z.m * z.n * size_bytes(z.out));
  if (Description::has_bias(z.epilogue)) o.bias = take(z.m * 4);
  std::byte* const flushed = take(kFlushBytes);
  if (at > end) return false;
  fill_for_timing(scratch, at - static_cast<std::byte*>(scratch), stream);
  s.choose(o, flushed, stream);
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  known.entries[z.key()] = s.chosen;
  return true;
}

bool is_clearly_faster(const std::function<void()>& first, const std::function<void()>& second,
                       void* scratch, cudaStream_t stream) {
  Trials trials(2, scratch, kFlushBytes, stream);
  for (int round = 0; round < kRounds; ++round) {
    trials.run(0, first);
    trials.run(1, second);
  }
  return trials.clearly(1, 0);
}

int64_t cold_bytes() { return kFlushBytes; }

bool is_noted(const std::string& key) {
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  return known.entries.contains(key);
}

void note(const std::string& key) {
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  known.entries[key] = Algorithm{};
}

std::string format_algorithms() {
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  std::string text = header() + "\n";
  std::map<std::string, Algorithm, std::less<>> all = known.entries;
  all.insert(known.first.begin(), known.first.end());
  for (const auto& [key, algorithm] : all) text += key + " " + to_hex(algorithm) + "\n";
  return text;
}

void parse_algorithms(std::string_view text) {
  std::map<std::string, Algorithm, std::less<>> entries;
  size_t number = 0;
  while (!text.empty()) {
    const size_t stop = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, stop);
    text.remove_prefix(std::min(stop + 1, text.size()));
    if (++number == 1) {
      if (line != header()) {
        log_warn("the table of product algorithms was made for '" +
                 std::string(line.substr(0, 100)) + "', this is '" + header() +
                 "': not used, so bits may differ");
        return;
      }
      continue;
    }
    const size_t space = line.find(' ');
    Algorithm algorithm{};
    if (space == std::string_view::npos || !from_hex(line.substr(space + 1), algorithm)) {
      fail_table(number, line);
    }
    entries[std::string(line.substr(0, space))] = algorithm;
  }
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  for (const auto& [key, algorithm] : entries) known.entries[key] = algorithm;
}

}  // namespace wam::cuda
