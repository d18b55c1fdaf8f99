// Measures the ceilings the design rests on: cuBLASLt at the model's shapes with the epilogues in
// use, cuDNN attention on rectangles and cross-attention, copy bandwidth. Random data throughout.
// usage: cuda_probe [gemm] [sdpa] [copy] [context] (all when none is named)
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn_frontend.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fe = cudnn_frontend;

void launch_fill_bf16(void* p, size_t n, uint32_t seed, float scale, cudaStream_t stream);
void launch_hash(const void* p, size_t words, unsigned long long* out, cudaStream_t stream);

#define CHECK_CUDA(x)                                                                     \
  do {                                                                                    \
    const cudaError_t status_ = (x);                                                      \
    if (status_ != cudaSuccess) {                                                         \
      std::printf("%s:%d %s: %s\n", __FILE__, __LINE__, #x, cudaGetErrorString(status_)); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)
#define CHECK_LT(x)                                                        \
  do {                                                                     \
    const cublasStatus_t status_ = (x);                                    \
    if (status_ != CUBLAS_STATUS_SUCCESS) {                                \
      std::printf("%s:%d %s: %d\n", __FILE__, __LINE__, #x, int(status_)); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

namespace {

cudaStream_t g_stream;
cublasLtHandle_t g_lt;
constexpr size_t kWorkspace = 64u << 20;
void* g_workspace;

struct Buffer {
  explicit Buffer(size_t bytes) : size(bytes) { CHECK_CUDA(cudaMalloc(&p, bytes)); }
  ~Buffer() { cudaFree(p); }
  Buffer(const Buffer&) = delete;
  void* p = nullptr;
  size_t size;
};
std::unique_ptr<Buffer> random_bf16(size_t n, uint32_t seed, float scale = 1.0f) {
  auto b = std::make_unique<Buffer>(n * 2);
  launch_fill_bf16(b->p, n, seed, scale, g_stream);
  CHECK_CUDA(cudaGetLastError());
  return b;
}
unsigned long long hash_of(const void* p, size_t bytes) {
  static unsigned long long* out = nullptr;
  if (!out) CHECK_CUDA(cudaMalloc(&out, 8));
  CHECK_CUDA(cudaMemsetAsync(out, 0, 8, g_stream));
  launch_hash(p, bytes / 4, out, g_stream);
  unsigned long long h = 0;
  CHECK_CUDA(cudaMemcpyAsync(&h, out, 8, cudaMemcpyDeviceToHost, g_stream));
  CHECK_CUDA(cudaStreamSynchronize(g_stream));
  return h;
}

// Median of `reps` timings of one call each, microseconds.
double time_us(const std::function<void()>& f, int reps = 7, int inner = 3) {
  static std::vector<cudaEvent_t> ev;
  while (int(ev.size()) < reps + 1) {
    cudaEvent_t e;
    CHECK_CUDA(cudaEventCreate(&e));
    ev.push_back(e);
  }
  f();
  CHECK_CUDA(cudaEventRecord(ev[0], g_stream));
  for (int i = 0; i < reps; ++i) {
    for (int j = 0; j < inner; ++j) f();
    CHECK_CUDA(cudaEventRecord(ev[i + 1], g_stream));
  }
  CHECK_CUDA(cudaStreamSynchronize(g_stream));
  std::vector<double> t;
  for (int i = 0; i < reps; ++i) {
    float ms;
    CHECK_CUDA(cudaEventElapsedTime(&ms, ev[i], ev[i + 1]));
    t.push_back(ms * 1e3 / inner);
  }
  std::sort(t.begin(), t.end());
  return t[t.size() / 2];
}

enum class Kind { kForward, kDgrad, kWgrad };
struct Gemm {
  Kind kind;
  int64_t rows, n, k;  // weight [n, k]
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  bool f32_out = false;
  float beta = 0;
  const char* note = "";
};
const char* epilogue_name(cublasLtEpilogue_t e) {
  switch (e) {
    case CUBLASLT_EPILOGUE_BIAS:
      return "BIAS";
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      return "GELU_AUX_BIAS";
    case CUBLASLT_EPILOGUE_DGELU:
      return "DGELU";
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
      return "DGELU_BGRAD";
    case CUBLASLT_EPILOGUE_BGRADB:
      return "BGRADB";
    default:
      return "-";
  }
}

void run_gemm(const Gemm& g, void* x, void* w, void* dy, void* out, void* aux, void* bias) {
  // Column-major view: D is [m, n].
  int64_t m, n, k, lda, ldb;
  void *a, *b;
  cublasOperation_t ta = CUBLAS_OP_N, tb = CUBLAS_OP_N;
  const char* kind;
  if (g.kind == Kind::kForward) {
    m = g.n, n = g.rows, k = g.k, a = w, b = x, ta = CUBLAS_OP_T, lda = g.k, ldb = g.k,
    kind = "fwd";
  } else if (g.kind == Kind::kDgrad) {
    m = g.k, n = g.rows, k = g.n, a = w, b = dy, lda = g.k, ldb = g.n, kind = "dgrad";
  } else {
    m = g.k, n = g.n, k = g.rows, a = x, b = dy, tb = CUBLAS_OP_T, lda = g.k, ldb = g.n,
    kind = "wgrad";
  }
  cublasLtMatmulDesc_t desc;
  CHECK_LT(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  auto set = [&](cublasLtMatmulDescAttributes_t at, const auto& v) {
    CHECK_LT(cublasLtMatmulDescSetAttribute(desc, at, &v, sizeof v));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, ta);
  set(CUBLASLT_MATMUL_DESC_TRANSB, tb);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, g.epilogue);
  const auto has = [&](int bit) { return (int(g.epilogue) & bit) != 0; };
  const bool bgrad =
      g.epilogue == CUBLASLT_EPILOGUE_BGRADB || g.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
  if (g.epilogue != CUBLASLT_EPILOGUE_DEFAULT && g.epilogue != CUBLASLT_EPILOGUE_DGELU) {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const cudaDataType_t bt = bgrad ? CUDA_R_32F : CUDA_R_16BF;
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bt);
  }
  if (has(128)) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, m);
  }
  cublasLtMatrixLayout_t la, lb, lc;
  CHECK_LT(cublasLtMatrixLayoutCreate(&la, CUDA_R_16BF, ta == CUBLAS_OP_T ? k : m,
                                      ta == CUBLAS_OP_T ? m : k, lda));
  CHECK_LT(cublasLtMatrixLayoutCreate(&lb, CUDA_R_16BF, tb == CUBLAS_OP_T ? n : k,
                                      tb == CUBLAS_OP_T ? k : n, ldb));
  CHECK_LT(cublasLtMatrixLayoutCreate(&lc, g.f32_out ? CUDA_R_32F : CUDA_R_16BF, m, n, m));
  cublasLtMatmulPreference_t pref;
  CHECK_LT(cublasLtMatmulPreferenceCreate(&pref));
  CHECK_LT(cublasLtMatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                &kWorkspace, sizeof kWorkspace));
  cublasLtMatmulHeuristicResult_t res[8];
  int count = 0;
  const auto st = cublasLtMatmulAlgoGetHeuristic(g_lt, desc, la, lb, lc, lc, pref, 8, res, &count);
  const size_t out_bytes = size_t(m) * n * (g.f32_out ? 4 : 2);
  std::printf("%-5s rows %6ld N %5ld K %5ld %-13s out %s beta %.0f %s:", kind, long(g.rows),
              long(g.n), long(g.k), epilogue_name(g.epilogue), g.f32_out ? "f32" : "bf16", g.beta,
              g.note);
  if (st != CUBLAS_STATUS_SUCCESS || count == 0) {
    std::printf(" NO ALGORITHM (status %d)\n", int(st));
    return;
  }
  const float one = 1;
  double first = 0, best = 1e30;
  int best_i = 0, nondet = 0;
  std::string list;
  for (int i = 0; i < count; ++i) {
    auto call = [&] {
      const auto s = cublasLtMatmul(g_lt, desc, &one, a, la, b, lb, &g.beta, out, lc, out, lc,
                                    &res[i].algo, g_workspace, kWorkspace, g_stream);
      if (s != CUBLAS_STATUS_SUCCESS) {
        std::printf(" [algo %d failed %d]", i, int(s));
      }
    };
    const double us = time_us(call, 5, 3);
    unsigned long long h[3], hb[3];
    for (int r = 0; r < 3; ++r) {
      if (g.beta != 0) CHECK_CUDA(cudaMemsetAsync(out, 0, out_bytes, g_stream));
      call();
      h[r] = hash_of(out, out_bytes);
      hb[r] = bgrad ? hash_of(bias, size_t(g.kind == Kind::kWgrad ? n : m) * 4) : 0;
    }
    const bool det = h[0] == h[1] && h[1] == h[2] && hb[0] == hb[1] && hb[1] == hb[2];
    if (!det) ++nondet;
    uint32_t tile = 0, stages = 0, splitk = 0, scheme = 0;
    uint16_t cluster = 0, inner = 0;
    size_t wr;
    auto get = [&](cublasLtMatmulAlgoConfigAttributes_t at, auto& v) {
      cublasLtMatmulAlgoConfigGetAttribute(&res[i].algo, at, &v, sizeof v, &wr);
    };
    get(CUBLASLT_ALGO_CONFIG_TILE_ID, tile), get(CUBLASLT_ALGO_CONFIG_STAGES_ID, stages),
        get(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, splitk);
    get(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, scheme),
        get(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, cluster),
        get(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, inner);
    if (i == 0) first = us;
    if (us < best) best = us, best_i = i;
    char t[160];
    std::snprintf(t, sizeof t, " %.0f%s(t%u s%u k%u r%u c%u ws%zuM)", 2.0 * m * n * k / us * 1e-6,
                  det ? "" : "!ND", tile, stages, splitk, scheme, cluster,
                  res[i].workspaceSize >> 20);
    list += t;
  }
  const double fl = 2.0 * m * n * k;
  std::printf(" heuristic %.0f best %.0f TFLOP/s (#%d) %.1f us, nondet %d/%d |%s\n",
              fl / first * 1e-6, fl / best * 1e-6, best_i, best, nondet, count, list.c_str());
  std::fflush(stdout);
  cublasLtMatmulPreferenceDestroy(pref);
  cublasLtMatrixLayoutDestroy(la), cublasLtMatrixLayoutDestroy(lb), cublasLtMatrixLayoutDestroy(lc);
  cublasLtMatmulDescDestroy(desc);
}

void gemms(const std::vector<Gemm>& list) {
  size_t x = 0, w = 0, y = 0;
  for (const Gemm& g : list) {
    x = std::max(x, size_t(g.rows) * g.k), w = std::max(w, size_t(g.n) * g.k),
    y = std::max(y, size_t(g.rows) * g.n);
  }
  auto bx = random_bf16(x, 1), bw = random_bf16(w, 2, 0.02f), by = random_bf16(y, 3);
  Buffer out(std::max({x * 2, y * 2, w * 4}));
  auto aux = random_bf16(std::max(x, y), 4);
  Buffer bias(65536 * 4);
  CHECK_CUDA(cudaMemset(bias.p, 0, bias.size));
  for (const Gemm& g : list) run_gemm(g, bx->p, bw->p, by->p, out.p, aux->p, bias.p);
}

void probe_gemm() {
  for (int64_t rows : {968, 7744, 15488, 30976}) {
    std::vector<Gemm> list;
    for (auto [n, k] : {std::pair<int64_t, int64_t>{9216, 3072}, {3072, 3072}}) {
      list.push_back({Kind::kForward, rows, n, k, CUBLASLT_EPILOGUE_BIAS});
      list.push_back({Kind::kDgrad, rows, n, k});
      list.push_back({Kind::kWgrad, rows, n, k, CUBLASLT_EPILOGUE_BGRADB, true, 0});
      list.push_back({Kind::kWgrad, rows, n, k, CUBLASLT_EPILOGUE_BGRADB, true, 1});
      list.push_back({Kind::kWgrad, rows, n, k, CUBLASLT_EPILOGUE_DEFAULT, true, 1});
      list.push_back({Kind::kWgrad, rows, n, k, CUBLASLT_EPILOGUE_DEFAULT, false, 0});
    }
    list.push_back({Kind::kForward, rows, 14336, 3072, CUBLASLT_EPILOGUE_DEFAULT});
    list.push_back({Kind::kForward, rows, 14336, 3072, CUBLASLT_EPILOGUE_BIAS});
    list.push_back({Kind::kForward, rows, 14336, 3072, CUBLASLT_EPILOGUE_GELU_AUX_BIAS});
    list.push_back({Kind::kDgrad, rows, 14336, 3072});
    list.push_back({Kind::kWgrad, rows, 14336, 3072, CUBLASLT_EPILOGUE_BGRADB, true, 1});
    list.push_back({Kind::kWgrad, rows, 14336, 3072, CUBLASLT_EPILOGUE_DEFAULT, true, 1});
    list.push_back({Kind::kForward, rows, 3072, 14336, CUBLASLT_EPILOGUE_BIAS});
    list.push_back({Kind::kDgrad, rows, 3072, 14336});
    list.push_back({Kind::kDgrad, rows, 3072, 14336, CUBLASLT_EPILOGUE_DGELU});
    list.push_back({Kind::kDgrad, rows, 3072, 14336, CUBLASLT_EPILOGUE_DGELU_BGRAD});
    list.push_back({Kind::kWgrad, rows, 3072, 14336, CUBLASLT_EPILOGUE_BGRADB, true, 1});
    list.push_back({Kind::kWgrad, rows, 3072, 14336, CUBLASLT_EPILOGUE_DEFAULT, true, 1});
    gemms(list);
  }
  gemms({{Kind::kForward, 15940, 15360, 5120, CUBLASLT_EPILOGUE_BIAS},
         {Kind::kForward, 15940, 13824, 5120, CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
         {Kind::kForward, 15940, 5120, 13824, CUBLASLT_EPILOGUE_BIAS},
         {Kind::kForward, 15940, 5120, 5120, CUBLASLT_EPILOGUE_BIAS},
         {Kind::kDgrad, 15940, 5120, 13824, CUBLASLT_EPILOGUE_DGELU},
         {Kind::kDgrad, 15940, 15360, 5120},
         {Kind::kWgrad, 15940, 15360, 5120, CUBLASLT_EPILOGUE_DEFAULT, true, 0},
         {Kind::kWgrad, 15940, 13824, 5120, CUBLASLT_EPILOGUE_DEFAULT, true, 0}});
}
void probe_context() {
  for (int64_t rows : {92 * 8, 257 * 8, 349 * 8, 513 * 8, 92 * 32, 257 * 32}) {
    gemms({{Kind::kForward, rows, 6144, 3072, CUBLASLT_EPILOGUE_BIAS},
           {Kind::kDgrad, rows, 6144, 3072},
           {Kind::kWgrad, rows, 6144, 3072, CUBLASLT_EPILOGUE_BGRADB, true, 1},
           {Kind::kWgrad, rows, 6144, 3072, CUBLASLT_EPILOGUE_DEFAULT, true, 1}});
  }
}

struct Sdpa {
  const char* name;
  int64_t b, h, q, kv;
};
cudnnHandle_t g_cudnn;
constexpr int64_t kHead = 128;

std::shared_ptr<fe::graph::Tensor_attributes> tensor(fe::graph::Graph& g, const char* name,
                                                     int64_t b, int64_t h, int64_t l, int64_t row,
                                                     int64_t uid) {
  return g.tensor(fe::graph::Tensor_attributes()
                      .set_name(name)
                      .set_dim({b, h, l, kHead})
                      .set_stride({l * row, kHead, row, 1})
                      .set_uid(uid)
                      .set_data_type(fe::DataType_t::BFLOAT16));
}

double run_plan(fe::graph::Graph& g, std::unordered_map<int64_t, void*>& pack, const char* what,
                bool& ok, std::vector<std::pair<void*, size_t>> outs, bool& det) {
  ok = false;
  auto e = g.validate();
  if (e.is_good()) e = g.build_operation_graph(g_cudnn);
  if (e.is_good()) e = g.create_execution_plans({fe::HeurMode_t::A});
  if (e.is_good()) e = g.check_support(g_cudnn);
  if (e.is_good()) e = g.build_plans(g_cudnn, fe::BuildPlanPolicy_t::HEURISTICS_CHOICE);
  if (!e.is_good()) {
    std::printf(" [%s: %s]", what, e.get_message().c_str());
    return 0;
  }
  const int64_t ws = g.get_workspace_size();
  Buffer work(std::max<int64_t>(ws, 16));
  auto call = [&] {
    auto s = g.execute(g_cudnn, pack, work.p);
    if (!s.is_good()) std::printf(" [%s exec: %s]", what, s.get_message().c_str());
  };
  const double us = time_us(call, 5, 2);
  unsigned long long h[3] = {};
  for (auto& r : h) {
    for (auto [p, n] : outs) CHECK_CUDA(cudaMemsetAsync(p, 0xff, n, g_stream));
    call();
    for (auto [p, n] : outs) r = r * 31 + hash_of(p, n);
  }
  det = h[0] == h[1] && h[1] == h[2];
  ok = true;
  std::printf(" ws %ldM", long(ws >> 20));
  return us;
}

void run_sdpa(const Sdpa& s) {
  const int64_t row_q = s.h * kHead, row_kv = 2 * s.h * kHead;
  const size_t nq = size_t(s.b) * s.q * row_q, nkv = size_t(s.b) * s.kv * row_kv;
  auto q = random_bf16(nq, 11), kv = random_bf16(nkv, 12), dout = random_bf16(nq, 13);
  Buffer o(nq * 2), dq(nq * 2), dkv(nkv * 2), stats(size_t(s.b) * s.h * s.q * 4);
  auto* k = static_cast<uint16_t*>(kv->p);
  auto* dk = static_cast<uint16_t*>(dkv.p);
  const double fl = 4.0 * s.b * s.h * double(s.q) * s.kv * kHead;
  const float scale = 0.08838834764f;
  std::printf("sdpa %-22s b %ld h %ld q %5ld kv %5ld:", s.name, long(s.b), long(s.h), long(s.q),
              long(s.kv));
  {
    fe::graph::Graph g;
    g.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    auto tq = tensor(g, "q", s.b, s.h, s.q, row_q, 1),
         tk = tensor(g, "k", s.b, s.h, s.kv, row_kv, 2),
         tv = tensor(g, "v", s.b, s.h, s.kv, row_kv, 3);
    auto [to, ts] = g.sdpa(
        tq, tk, tv,
        fe::graph::SDPA_attributes().set_name("f").set_generate_stats(true).set_attn_scale(scale));
    to->set_output(true)
        .set_dim({s.b, s.h, s.q, kHead})
        .set_stride({s.q * row_q, kHead, row_q, 1})
        .set_uid(4);
    ts->set_output(true).set_data_type(fe::DataType_t::FLOAT).set_uid(5);
    std::unordered_map<int64_t, void*> pack{
        {1, q->p}, {2, k}, {3, k + row_q}, {4, o.p}, {5, stats.p}};
    bool ok, det;
    const double us = run_plan(g, pack, "fwd", ok, {{o.p, o.size}}, det);
    if (ok) std::printf(" fwd %.1f us %.0f TFLOP/s%s;", us, fl / us * 1e-6, det ? "" : " ND");
  }
  for (bool want_det : {true, false}) {
    fe::graph::Graph g;
    g.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    auto tq = tensor(g, "q", s.b, s.h, s.q, row_q, 1),
         tk = tensor(g, "k", s.b, s.h, s.kv, row_kv, 2),
         tv = tensor(g, "v", s.b, s.h, s.kv, row_kv, 3);
    auto to = tensor(g, "o", s.b, s.h, s.q, row_q, 4),
         tdo = tensor(g, "do", s.b, s.h, s.q, row_q, 6);
    auto ts = g.tensor(fe::graph::Tensor_attributes()
                           .set_name("stats")
                           .set_dim({s.b, s.h, s.q, 1})
                           .set_stride({s.h * s.q, s.q, 1, 1})
                           .set_uid(5)
                           .set_data_type(fe::DataType_t::FLOAT));
    auto [tdq, tdk, tdv] = g.sdpa_backward(tq, tk, tv, to, tdo, ts,
                                           fe::graph::SDPA_backward_attributes()
                                               .set_name("b")
                                               .set_attn_scale(scale)
                                               .set_deterministic_algorithm(want_det));
    tdq->set_output(true)
        .set_dim({s.b, s.h, s.q, kHead})
        .set_stride({s.q * row_q, kHead, row_q, 1})
        .set_uid(7);
    tdk->set_output(true)
        .set_dim({s.b, s.h, s.kv, kHead})
        .set_stride({s.kv * row_kv, kHead, row_kv, 1})
        .set_uid(8);
    tdv->set_output(true)
        .set_dim({s.b, s.h, s.kv, kHead})
        .set_stride({s.kv * row_kv, kHead, row_kv, 1})
        .set_uid(9);
    std::unordered_map<int64_t, void*> pack{{1, q->p}, {2, k},       {3, k + row_q},
                                            {4, o.p},  {5, stats.p}, {6, dout->p},
                                            {7, dq.p}, {8, dk},      {9, dk + row_q}};
    bool ok, det;
    const double us = run_plan(g, pack, want_det ? "bwd det" : "bwd", ok,
                               {{dq.p, dq.size}, {dkv.p, dkv.size}}, det);
    if (ok)
      std::printf(" bwd%s %.1f us %.0f TFLOP/s%s;", want_det ? "(det)" : "", us,
                  2.5 * fl / us * 1e-6, det ? "" : " ND");
  }
  std::printf("\n");
  std::fflush(stdout);
}

void probe_sdpa() {
  if (cudnnCreate(&g_cudnn) != CUDNN_STATUS_SUCCESS) {
    std::printf("cudnnCreate failed\n");
    return;
  }
  cudnnSetStream(g_cudnn, g_stream);
  std::printf("cuDNN %zu\n", cudnnGetVersion());
  const Sdpa list[] = {{"5B dense", 8, 24, 968, 968},
                       {"5B cross text", 8, 24, 968, 92},
                       {"5B cross image", 8, 24, 968, 257},
                       {"5B cross text 512", 8, 24, 968, 513},
                       {"5B noisy 3", 8, 24, 116, 467},
                       {"5B noisy 0", 8, 24, 116, 167},
                       {"5B clean 3", 8, 24, 100, 450},
                       {"5B clean 0", 8, 24, 100, 150},
                       {"5B frame", 8, 24, 50, 50},
                       {"5B cross text x32", 32, 24, 968, 92},
                       {"5B cross image x32", 32, 24, 968, 257},
                       {"5B noisy 3 x32", 32, 24, 116, 467},
                       {"14B dense", 1, 40, 15940, 15940},
                       {"14B noisy 0", 1, 40, 1784, 2665},
                       {"14B noisy 3", 1, 40, 1784, 7945},
                       {"14B clean 3", 1, 40, 1760, 7920},
                       {"14B cross text", 1, 40, 15940, 92},
                       {"14B cross image", 1, 40, 15940, 257},
                       {"14B cross text 512", 1, 40, 15940, 513}};
  for (const Sdpa& s : list) run_sdpa(s);
}

void probe_copy() {
  const size_t bytes = size_t{4} << 30;
  Buffer a(bytes), b(bytes);
  launch_fill_bf16(a.p, bytes / 2, 5, 1.0f, g_stream);
  const double us = time_us(
      [&] { CHECK_CUDA(cudaMemcpyAsync(b.p, a.p, bytes, cudaMemcpyDeviceToDevice, g_stream)); }, 5,
      2);
  std::printf("copy d2d 4 GiB: %.2f TB/s read+write\n", 2.0 * bytes / us * 1e-6);
  const double ms = time_us([&] { CHECK_CUDA(cudaMemsetAsync(b.p, 0, bytes, g_stream)); }, 5, 2);
  std::printf("memset 4 GiB: %.2f TB/s\n", double(bytes) / ms * 1e-6);
  void* host;
  const size_t hb = size_t{256} << 20;
  CHECK_CUDA(cudaMallocHost(&host, hb));
  std::memset(host, 1, hb);
  const double h2d = time_us(
      [&] { CHECK_CUDA(cudaMemcpyAsync(a.p, host, hb, cudaMemcpyHostToDevice, g_stream)); }, 5, 1);
  const double d2h = time_us(
      [&] { CHECK_CUDA(cudaMemcpyAsync(host, a.p, hb, cudaMemcpyDeviceToHost, g_stream)); }, 5, 1);
  std::printf("pinned h2d %.1f GB/s, d2h %.1f GB/s\n", hb / h2d * 1e-3, hb / d2h * 1e-3);
  cudaFreeHost(host);
}

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::printf("SKIPPED: no CUDA device\n");
    return 0;
  }
  cudaDeviceProp p;
  CHECK_CUDA(cudaGetDeviceProperties(&p, 0));
  int driver = 0;
  cudaDriverGetVersion(&driver);
  size_t free_bytes, total;
  cudaMemGetInfo(&free_bytes, &total);
  std::printf("%s, %d SMs, L2 %d MiB, driver API %d, cublasLt %zu, free %.2f of %.2f GiB\n", p.name,
              p.multiProcessorCount, p.l2CacheSize >> 20, driver, cublasLtGetVersion(),
              free_bytes / double(1 << 30), total / double(1 << 30));
  CHECK_CUDA(cudaStreamCreate(&g_stream));
  CHECK_LT(cublasLtCreate(&g_lt));
  CHECK_CUDA(cudaMalloc(&g_workspace, kWorkspace));
  auto wants = [&](const char* what) {
    if (argc == 1) return true;
    for (int i = 1; i < argc; ++i) {
      if (std::string(argv[i]) == what) return true;
    }
    return false;
  };
  if (wants("copy")) probe_copy();
  if (wants("sdpa")) probe_sdpa();
  if (wants("context")) probe_context();
  if (wants("gemm")) probe_gemm();
}
