// The frozen encoders at full size on a GPU: milliseconds a sample, memory planned and seen, where
// the time goes. usage: cuda_encoders vae|libero|wan21|umt5|clip BATCH... [profile]
// libero: vae with tiled pictures of 256 x 512 to be resized. A batch is what is encoded at a time.
// Weights and inputs are random.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include "wam/base/error.h"
#include "wam/base/hash.h"
#include "wam/base/philox.h"
#include "wam/exec/cuda.h"
#include "wam/models/clip.h"
#include "wam/models/umt5.h"
#include "wam/models/vae.h"
#include "wam/ops/cast.h"
#include "wam/ops/reshape.h"
#include "wam/passes/common_subexpressions.h"
#include "wam/passes/dead_code.h"

namespace wam {
namespace {

constexpr DType kCompute = DType::kBF16;

using Build = std::function<void(Graph&, ParamUser&, int64_t batch)>;

struct Size {
  int64_t height, width;
};

void build_vae(const VaeConfig& config, Size camera, Size picture, Graph& graph, ParamUser& params,
               int64_t batch) {
  const ValueId frames =
      graph.add_input("frames", {DType::kU8, Shape{batch, 33, camera.height, camera.width, 3}});
  const ValueId video = frames_to_video(params.builder(), frames, picture.height, picture.width);
  graph.add_output("out", vae_encode(params, config, video));
}

void build_text(Graph& graph, ParamUser& params, int64_t batch) {
  const ValueId ids = graph.add_input("ids", {DType::kI32, Shape{batch, 512}});
  const ValueId mask = graph.add_input("mask", {DType::kF32, Shape{batch, 512}});
  graph.add_output("out", build_umt5(params, umt5_xxl(), ids, mask).prompt);
}

void build_pictures(Graph& graph, ParamUser& params, int64_t batch) {
  Builder& b = params.builder();
  const ValueId frames = graph.add_input("frames", {DType::kU8, Shape{batch, 1, 160, 320, 3}});
  const ValueId picture =
      reshape(b, frames_to_video(b, frames, 160, 320), Shape{batch, 160, 320, 3});
  const ClipConfig config = clip_vit_h();
  graph.add_output("out", build_clip(params, config, clip_preprocess(b, config, picture)));
}

// The compute type's f32 view of an input: bytes, ids of a small vocabulary, ones of a mask.
HostTensor input_of(const TensorType& type) {
  HostTensor value(type);
  Random random(3, RandomUse::kTest, 0, 7);
  auto* bytes = static_cast<uint8_t*>(value.data());
  if (type.dtype == DType::kU8) {
    for (int64_t i = 0; i < value.size_bytes(); ++i)
      bytes[i] = static_cast<uint8_t>(random.below(256u));
  } else if (type.dtype == DType::kI32) {
    for (int32_t& id : value.as<int32_t>()) id = static_cast<int32_t>(random.below(250000));
  } else {
    for (float& one : value.as<float>()) one = 1;
  }
  return value;
}

void fill_weights(const ParamSet& set, Memory& memory) {
  for (const Param& param : set.params()) {
    for (const ParamPart& part : param.parts) {
      const bool ones = part.init.kind == InitKind::kOnes;
      const double bound = part.init.kind == InitKind::kZeros ? 0.02 : uniform_bound(part);
      memory.fill_uniform(param.region, (param.offset_elements + part.offset_elements) * 2,
                          part.shape.num_elements(), kCompute,
                          static_cast<float>(ones ? 0.9 : -bound),
                          static_cast<float>(ones ? 1.1 : bound), hash64(part.name));
    }
  }
}

void print_profile(const Executor& executor, int64_t batch, double total) {
  struct Entry {
    double seconds = 0, flops = 0, bytes = 0;
    int count = 0;
  };
  std::map<std::string, Entry> by_op, by_conv;
  const Program& program = executor.program();
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const StepTime& time = executor.profile()[i];
    const auto add = [&](Entry& entry) {
      entry.seconds += time.seconds / static_cast<double>(time.runs);
      entry.flops += step.cost.flops;
      entry.bytes += step.cost.bytes;
      ++entry.count;
    };
    add(by_op[step.op]);
    if (step.op == "conv3d" || step.op == "channel_norm" || step.op == "linear") {
      add(by_conv[fmt::format("{} {} x {}{}", step.op, step.inputs[0].type.to_string(),
                              step.inputs[1].type.shape.to_string(),
                              step.inputs.size() == 4 ? " + residual" : "")]);
    }
  }
  const auto print = [&](const std::map<std::string, Entry>& entries) {
    std::vector<std::pair<std::string, Entry>> sorted(entries.begin(), entries.end());
    std::ranges::sort(
        sorted, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    for (const auto& [name, e] : sorted) {
      if (e.seconds < total * 0.001) continue;
      fmt::print("  {:74} {:3} {:8.1f} us/sample {:5.1f} % {:6.0f} TFLOP/s {:5.2f} TB/s\n", name,
                 e.count, 1e6 * e.seconds / static_cast<double>(batch), 100 * e.seconds / total,
                 e.flops / e.seconds * 1e-12, e.bytes / e.seconds * 1e-12);
    }
  };
  print(by_op);
  print(by_conv);
}

double median_ms(Executor& executor, int reps) {
  std::vector<double> times;
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int i = 0; i < reps; ++i) {
    cudaDeviceSynchronize();
    cudaEventRecord(begin, cudaStreamLegacy);
    executor.run();
    executor.synchronize();
    cudaEventRecord(end, cudaStreamLegacy);
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    times.push_back(static_cast<double>(ms));
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::ranges::sort(times);
  return times[times.size() / 2];
}

bool same_bits(const HostTensor& a, const HostTensor& b) {
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())) == 0;
}

void measure(Device& device, const std::string& what, const Build& build, int64_t batch,
             bool profile) {
  Graph graph(what);
  Builder b(graph);
  ParamSet set(what, /*trainable=*/false);
  ParamUser params(b, set, kCompute);
  build(graph, params, batch);
  merge_common_subexpressions(graph);
  remove_dead_code(graph);
  const Program program = lower(graph, device.target());
  const Program* programs[] = {&program};
  const MemoryPlan plan = combine(programs);
  const int64_t free_before = device.free_bytes();
  const auto memory = device.allocate(plan);
  fill_weights(set, *memory);
  const auto load = [&](const ExecOptions& options) {
    auto executor = device.load(program, memory, options);
    for (const NamedOperand& input : program.inputs) {
      executor->write(input.name, input_of(input.operand.type));
    }
    return executor;
  };
  auto streamed = load({.mode = ExecMode::kStream, .poison = true});
  streamed->run();
  const HostTensor first = streamed->read("out");
  double largest = 0;
  bool finite = true;
  const HostTensor wide = first.to(DType::kF32);
  for (const float v : wide.as<float>()) {
    finite = finite && std::isfinite(v);
    largest = std::max(largest, std::fabs(static_cast<double>(v)));
  }
  streamed.reset();
  auto captured = load({.mode = ExecMode::kGraph});
  captured->run();
  captured->run();
  const double ms = median_ms(*captured, 7);
  const bool same = same_bits(first, captured->read("out"));
  const int64_t seen = free_before - device.free_bytes();
  fmt::print(
      "{} batch {}: {:.3f} ms, {:.3f} ms a sample, {:.0f} TFLOP/s; planned {:.3f} GB (arena "
      "{:.3f}), "
      "seen {:.3f} GB; {} steps, bits {}, largest output {:.3g}{}\n",
      what, batch, ms, ms / static_cast<double>(batch), program.cost.flops / ms * 1e-9,
      1e-9 * static_cast<double>(plan.total_bytes()), 1e-9 * static_cast<double>(plan.arena_bytes),
      1e-9 * static_cast<double>(seen), program.steps.size(),
      same ? "streamed = captured" : "DIFFER", largest, finite ? "" : " NOT FINITE");
  captured.reset();
  if (profile) {
    auto timed = load({.mode = ExecMode::kStream, .profile = true});
    for (int i = 0; i < 3; ++i) timed->run();
    print_profile(*timed, batch, ms * 1e-3);
  }
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  if (argc < 3) {
    fmt::print("usage: cuda_encoders vae|libero|wan21|umt5|clip BATCH... [profile]\n");
    return 2;
  }
  const std::string what = argv[1];
  const bool profile = std::string(argv[argc - 1]) == "profile";
  const auto device = make_cuda_device();
  const auto build = [&](Graph& graph, ParamUser& params, int64_t batch) {
    constexpr Size kSmall{160, 320}, kLibero{256, 512}, kLarge{352, 640};
    if (what == "vae") return build_vae(vae_wan22(), kSmall, kSmall, graph, params, batch);
    if (what == "libero") return build_vae(vae_wan22(), kLibero, kSmall, graph, params, batch);
    if (what == "wan21") return build_vae(vae_wan21(), kLarge, kLarge, graph, params, batch);
    if (what == "umt5") return build_text(graph, params, batch);
    return build_pictures(graph, params, batch);
  };
  for (int i = 2; i < argc - (profile ? 1 : 0); ++i) {
    measure(*device, what, build, std::stol(argv[i]), profile);
  }
  return 0;
}

}  // namespace
}  // namespace wam

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    fmt::print("SKIPPED: no GPU\n");
    return 0;
  }
  try {
    return wam::run(argc, argv);
  } catch (const wam::Error& error) {
    fmt::print("{}\n", error.what());
    return 1;
  }
}
