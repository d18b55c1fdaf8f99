// What a fault on the device looks like: one mode a process, since nothing runs after a fault.
//   cuda_faults stream|graph   a row index far outside of its tensor: the error must name the op,
//   and
//                              every later call must fail too; captured, it must say how to learn
//                              it
//   cuda_faults hold BYTES     takes so much of the card's memory until standard input ends
// Without a mode, tries the first two in processes of their own. Skips aloud without a GPU.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "wam/base/error.h"
#include "wam/exec/cuda.h"
#include "wam/ops/add.h"
#include "wam/ops/scale.h"
#include "wam/ops/take_rows.h"

namespace wam {
namespace {

constexpr int64_t kRows = 64;

// y = 2 x[index] + 2 x[index], the rows taken by a step named "lookup".
Graph make_graph() {
  Graph graph("faulty");
  Builder b(graph);
  const ValueId x = graph.add_input("x", {DType::kF32, Shape{1, kRows, 128}});
  const ValueId index = graph.add_input("index", {DType::kI32, Shape{kRows}});
  b.set_scope({.label = "before"});
  const ValueId doubled = scale(b, x, 2);
  b.set_scope({.label = "lookup"});
  const ValueId taken = take_rows(b, doubled, index);
  b.set_scope({.label = "after"});
  graph.add_output("y", add(b, taken, taken));
  return graph;
}

bool expect(bool condition, const char* what) {
  fmt::print("{}: {}\n", condition ? "ok" : "FAILED", what);
  return condition;
}

bool contains(const std::string& text, const char* piece) {
  return text.find(piece) != std::string::npos;
}

// The message of the DeviceError that `call` throws; empty if it throws none.
template <typename F>
std::string message_of(const F& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    fmt::print("  {}\n", error.what());
    return error.what();
  }
  return "";
}

int fault(ExecMode mode) {
  const auto gpu = make_cuda_device();
  const Program program = lower(make_graph(), gpu->target());
  const Program* programs[] = {&program};
  const auto memory = gpu->allocate(combine(programs));
  const auto executor = gpu->load(program, memory, {.mode = mode});
  HostTensor index(DType::kI32, Shape{kRows});
  for (int64_t i = 0; i < kRows; ++i) {
    index.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  }
  executor->write("x", HostTensor::zeros(DType::kF32, Shape{1, kRows, 128}));
  executor->write("index", index);
  for (int i = 0; i < 3; ++i) executor->run();  // graph mode: streamed, captured, replayed
  bool good = expect(executor->read("y").as<float>()[0] == 0, "runs before the fault");
  index.as<int32_t>()[5] = 1 << 30;
  executor->write("index", index);
  executor->run();
  const std::string first = message_of([&] { executor->read("y"); });
  good = expect(!first.empty(), "the fault is an error") && good;
  if (mode == ExecMode::kStream) {
    good = expect(contains(first, "take_rows of lookup"), "it names the op") && good;
  } else {
    good = expect(contains(first, "exec: stream"), "it says how to learn the op") && good;
  }
  good = expect(!message_of([&] {
                   executor->run();
                   executor->synchronize();
                 }).empty(),
                "nothing runs after it") &&
         good;
  std::fflush(stdout);
  std::_Exit(good ? 0 : 1);  // what is left of the device cannot be freed
}

int hold(const std::string& bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, std::stoull(bytes));
  fmt::print("{} bytes: {}\n", bytes, cudaGetErrorString(status));
  std::fflush(stdout);
  char c;
  while (read(STDIN_FILENO, &c, 1) > 0) {
  }
  cudaFree(data);
  return status == cudaSuccess ? 0 : 1;
}

int in_own_process(const char* program, const char* mode) {
  fmt::print("{}\n", mode);
  std::fflush(stdout);
  const int status = std::system(fmt::format("'{}' {}", program, mode).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace
}  // namespace wam

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    if (mode == "stream") return wam::fault(wam::ExecMode::kStream);
    if (mode == "graph") return wam::fault(wam::ExecMode::kGraph);
    if (mode == "hold" && argc == 3) return wam::hold(argv[2]);
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      fmt::print("SKIPPED: no GPU, so no fault was provoked\n");
      return 0;
    }
    const int streamed = wam::in_own_process(argv[0], "stream");
    const int captured = wam::in_own_process(argv[0], "graph");
    return streamed == 0 && captured == 0 ? 0 : 1;
  } catch (const wam::Error& error) {
    fmt::print("{}\n", error.what());
    return error.exit_code();
  }
}
