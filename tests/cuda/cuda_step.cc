// Forward and backward of a DiT on the GPU: in f32 and bf16 against the CPU's f32, streamed against
// captured (the same bits), twice (the same bits). With `time LAYERS BATCH [tuned]` it times the 5B
// model at full width with that many layers, its products' algorithms tuned or not, and prints
// where the time goes. Skips aloud without a GPU.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>

#include "wam/autodiff/gradients.h"
#include "wam/base/error.h"
#include "wam/base/random_stream.h"
#include "wam/exec/cuda.h"
#include "wam/kernels/cuda/elementwise.h"
#include "wam/kernels/cuda/gemm.h"
#include "wam/models/dit_train.h"
#include "wam/models/params.h"
#include "wam/passes/common_subexpressions.h"
#include "wam/passes/dead_code.h"
#include "wam/passes/fuse_bias_gradients.h"
#include "wam/passes/fuse_linear_gelu.h"
#include "wam/passes/fuse_padded_sums.h"
#include "wam/passes/fuse_residual_norm.h"

namespace wam {
namespace {

struct Built {
  Program program;
  std::vector<std::string> gradients;  // names of outputs
};

// Gradients are outputs, or with `stored` states in their own regions, as a trainer keeps them.
Built build(const DitConfig& config, const DitTrainShape& shape, DType dtype, const Target& target,
            bool stored) {
  Built built;
  Graph graph("step");
  Builder b(graph);
  ParamSet set("dit", true);
  ParamUser user(b, set, dtype);
  const DitTrain model = build_dit_train(user, config, shape);
  graph.add_output("loss", model.loss);
  merge_common_subexpressions(graph);
  fuse_linear_gelu(graph);
  fuse_residual_norm(graph);
  remove_dead_code(graph);
  std::vector<ValueId> wrt;
  const auto used = user.used();
  for (const auto& [param, value] : used) wrt.push_back(value);
  const std::vector<ValueId> grads = gradients(b, graph.find_output("loss"), wrt);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].valid()) continue;
    const Param& param = *used[i].first;
    if (stored) {
      const ValueId state = graph.add_state(
          "grad/" + param.name, b.type(grads[i]),
          {gradient_region(param.region), param.offset_elements * 4, StateRole::kGradient});
      graph.add_update(state, grads[i]);
    } else {
      built.gradients.push_back("grad/" + param.name);
      graph.add_output(built.gradients.back(), grads[i]);
    }
  }
  merge_common_subexpressions(graph);
  remove_dead_code(graph);
  fuse_linear_dgrad_gelu(graph);
  fuse_padded_sums(graph);
  fuse_gradient_sums(graph);
  fuse_bias_gradients(graph);
  remove_dead_code(graph);
  built.program = lower(graph, target);
  return built;
}

HostTensor random_f32(const std::string& name, const Shape& shape, double size) {
  uint64_t key = 14695981039346656037u;
  for (const char c : name) key = (key ^ static_cast<uint8_t>(c)) * 1099511628211u;
  Random random(11, RandomUse::kTest, 0, key);
  HostTensor tensor(DType::kF32, shape);
  const bool weight =
      name.find("weight") != std::string::npos || name.find("mask") != std::string::npos;
  for (float& x : tensor.as<float>()) {
    x = static_cast<float>(size * random.normal());
    if (weight && shape.ndim() <= 2 && name.find('.') == std::string::npos) x = std::fabs(x);
  }
  return tensor;
}

struct Run {
  std::shared_ptr<Memory> memory;
  std::unique_ptr<Executor> executor;
};

// Everything written from f32 values rounded to bf16, so that all devices and types see the same.
Run load(Device& device, const Built& built, const ExecOptions& options) {
  const Program* programs[] = {&built.program};
  Run run;
  run.memory = device.allocate(combine(programs));
  run.executor = device.load(built.program, run.memory, options);
  for (const auto* list : {&built.program.inputs, &built.program.states}) {
    for (const NamedOperand& entry : *list) {
      const bool norm =
          entry.name.find("norm") != std::string::npos && entry.operand.type.shape.ndim() == 1;
      HostTensor value = random_f32(entry.name, entry.operand.type.shape, norm ? 1 : 0.1);
      run.executor->write(entry.name, value.to(DType::kBF16).to(entry.operand.type.dtype));
    }
  }
  return run;
}

double relative_error(const HostTensor& got, const HostTensor& want) {
  double difference = 0, size = 0;
  const HostTensor a = got.to(DType::kF64), b = want.to(DType::kF64);
  for (size_t i = 0; i < a.as<double>().size(); ++i) {
    difference += std::pow(a.as<double>()[i] - b.as<double>()[i], 2);
    size += std::pow(b.as<double>()[i], 2);
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

bool same_bits(const HostTensor& a, const HostTensor& b) {
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())) == 0;
}

DitConfig small_config() {
  DitConfig c;
  c.dim = 128;
  c.layers = 2;
  c.heads = 2;
  c.ffn_dim = 256;
  c.freq_dim = 64;
  c.text_dim = 64;
  c.text_len = 16;
  c.clip_dim = 48;
  c.clip_tokens = 9;
  c.latent_channels = 8;
  c.coder_dim = 64;
  c.num_blocks = 2;
  c.actions_per_block = 4;
  c.latent_height = 4;
  c.latent_width = 6;
  return c;
}

bool compare(Device& cpu, Device& gpu, DType dtype, double tolerance) {
  const DitConfig config = small_config();
  const DitTrainShape shape{.batch = 3, .text_tokens = 7};
  const Built want = build(config, shape, DType::kF32, cpu.target(), false);
  const Built got = build(config, shape, dtype, gpu.target(), false);
  Run reference = load(cpu, want, {});
  reference.executor->run();
  Run streamed = load(gpu, got, {.mode = ExecMode::kStream, .poison = true});
  Run captured = load(gpu, got, {.mode = ExecMode::kGraph});
  std::vector<std::string> names = got.gradients;
  names.push_back("loss");
  streamed.executor->run();
  double worst = 0;
  std::string where;
  for (const std::string& name : names) {
    const double error =
        relative_error(streamed.executor->read(name), reference.executor->read(name));
    if (!(error <= worst)) {
      worst = error;
      where = name;
    }
  }
  int different = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {  // streamed, captured, replayed
    captured.executor->run();
    for (const std::string& name : names) {
      if (!same_bits(streamed.executor->read(name), captured.executor->read(name))) ++different;
    }
  }
  const bool right = worst <= tolerance && different == 0;
  fmt::print(
      "{}: loss {} (CPU {}), worst relative error {:.2e} ({}), {} of {} values with other bits "
      "{}\n",
      name(dtype), streamed.executor->read("loss").as<float>()[0],
      reference.executor->read("loss").as<float>()[0], worst, where, different, 3 * names.size(),
      right ? "" : "WRONG");
  return right;
}

// Weights of a region: small numbers of either sign.
void fill_region(Memory& memory, const std::string& region, int64_t bytes, float size) {
  void* at = memory.region_address(region);
  cuda::fill_for_timing(at, bytes, nullptr);
  cuda::launch_unary({cuda::Unary::kScale, DType::kBF16, bytes / 2, size, 0}, at, at, nullptr);
  cudaDeviceSynchronize();
}

void time_step(Device& gpu, int64_t layers, int64_t batch, bool tune) {
  DitConfig config = dit_5b();
  config.layers = layers;
  config.actions_per_block = 16;
  const DitTrainShape shape{.batch = batch, .text_tokens = 92};
  const Built built = build(config, shape, DType::kBF16, gpu.target(), true);
  const Program* programs[] = {&built.program};
  const int64_t free_before = gpu.free_bytes();
  const auto memory = gpu.allocate(combine(programs));
  for (const Region& region : built.program.regions) {
    if (region.name.find(":grad") == std::string::npos)
      fill_region(*memory, region.name, region.bytes, 0.03f);
  }
  const auto executor = gpu.load(built.program, memory, {.tune = tune});
  for (const NamedOperand& entry : built.program.inputs) {
    const HostTensor value = random_f32(entry.name, entry.operand.type.shape, 0.5);
    executor->write(entry.name, value.to(entry.operand.type.dtype));
  }
  executor->run();
  executor->synchronize();
  executor->run();
  executor->synchronize();
  constexpr int kRuns = 10;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) executor->run();
  executor->synchronize();
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  fmt::print(
      "5B, {} layers, batch {}: {:.2f} ms a step captured, {:.1f} TFLOP/s, loss {}; planned {:.2f} "
      "GB, "
      "seen {:.2f} GB\n",
      layers, batch, elapsed.count() / kRuns,
      built.program.cost.flops / (elapsed.count() / kRuns) * 1e-9,
      executor->read("loss").as<float>()[0],
      static_cast<double>(combine(programs).total_bytes()) * 1e-9,
      static_cast<double>(free_before - gpu.free_bytes()) * 1e-9);
  const auto profiled = gpu.load(built.program, memory, {.profile = true});
  for (int i = 0; i < 4; ++i) profiled->run();
  struct Total {
    double us = 0, flops = 0, bytes = 0;
    int calls = 0;
  };
  std::map<std::string, Total> by_op;
  double all = 0;
  for (size_t i = 0; i < built.program.steps.size(); ++i) {
    const Step& step = built.program.steps[i];
    Total& total = by_op[step.op];
    const double us = 1e6 * profiled->profile()[i].seconds / 4;
    total.us += us;
    total.flops += step.cost.flops;
    total.bytes += step.cost.bytes;
    ++total.calls;
    all += us;
  }
  std::vector<std::pair<std::string, Total>> sorted(by_op.begin(), by_op.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  for (const auto& [op, total] : sorted) {
    fmt::print("  {:24} {:5} calls {:9.1f} us {:5.1f} %  {:6.1f} TFLOP/s {:5.2f} TB/s\n", op,
               total.calls, total.us, 100 * total.us / all, total.flops / total.us * 1e-6,
               total.bytes / total.us * 1e-6);
  }
  fmt::print("  kernels {:.2f} ms\n", all * 1e-3);
}

// What is drawn on the device has the host's bits: uniform numbers in f32 and split in halves.
bool compare_draws(Device& cpu, Device& gpu) {
  constexpr int64_t kCount = 1'000'001;
  const RandomStream stream(3, RandomUse::kWeightInit, 0, 0x123456789abcdefu);
  MemoryPlan plan;
  plan.regions = {{"f32", 4 * kCount}, {"bf16", 2 * kCount}, {"high", 2 * kCount}, {"low", 2 * kCount}};
  std::map<std::string, std::vector<std::byte>> bits[2];
  for (int i = 0; i < 2; ++i) {
    const std::shared_ptr<Memory> memory = (i == 0 ? cpu : gpu).allocate(plan);
    memory->draw_uniform({.region = "f32"}, kCount, stream, -0.03, 0.03);
    memory->draw_uniform({.region = "bf16", .dtype = DType::kBF16}, kCount, stream, -0.03, 0.03);
    memory->draw_uniform({.region = "high", .dtype = DType::kBF16, .low_region = "low"}, kCount, stream, -0.03,
                         0.03);
    for (const auto& [region, bytes] : plan.regions) {
      bits[i][region].resize(static_cast<size_t>(bytes));
      memory->read_region(region, 0, bits[i][region].data(), bytes);
    }
  }
  const bool right = bits[0] == bits[1];
  fmt::print("weights drawn on the device: {}\n", right ? "the host's bits" : "OTHER BITS");
  return right;
}

int run(int argc, char** argv) {
  const bool tuned = argc == 5 && std::string(argv[4]) == "tuned";
  const auto cpu = make_cpu_device(), gpu = make_cuda_device();
  fmt::print("{}\n", gpu->name());
  if (argc >= 4 && std::string(argv[1]) == "time") {
    time_step(*gpu, std::stoll(argv[2]), std::stoll(argv[3]), tuned);
    return 0;
  }
  const bool f32 = compare(*cpu, *gpu, DType::kF32, 1e-4);
  // Activations round to 2^-8; the smallest gradients are sums that cancel, behind a ReLU whose
  // side a rounding may change.
  const bool bf16 = compare(*cpu, *gpu, DType::kBF16, 1e-1);
  const bool draws = compare_draws(*cpu, *gpu);
  return f32 && bf16 && draws ? 0 : 1;
}

}  // namespace
}  // namespace wam

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    fmt::print("SKIPPED: no GPU, so the step was not run\n");
    return 0;
  }
  try {
    return wam::run(argc, argv);
  } catch (const wam::Error& error) {
    fmt::print("{}\n", error.what());
    return error.exit_code();
  }
}
