#include "wam/train/bench_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "wam/base/check.h"
#include "wam/ops/add.h"
#include "wam/ops/copy.h"
#include "wam/ops/linear.h"
#include "wam/ops/sum_squares.h"
#include "wam/train/bench_rig.h"
#include "wam/train/device.h"

namespace wam::train {
namespace {

constexpr const char* kRegion = "bench";
constexpr int64_t kAlignment = 512;
// More than twice the largest cache of a GPU.
constexpr double kColdBytes = 256e6;

int64_t align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Bytes of the program that operands lie in, together where they overlap.
struct Piece {
  Location::Space space;
  int32_t region;
  int64_t begin, end;
  int64_t at = 0;  // of its beginning in the new region
};

class Pieces {
 public:
  explicit Pieces(const Step& step) {
    for (const auto* list : {&step.inputs, &step.outputs}) {
      for (const Operand& operand : *list) add(operand.at, operand.type.size_bytes());
    }
    if (step.workspace_bytes > 0) add(step.workspace, step.workspace_bytes);
    merge();
  }

  int64_t bytes() const { return bytes_; }
  // Constants stay where they are.
  Location moved(Location at, int64_t shift) const {
    if (at.space == Location::Space::kConstant) return at;
    for (const Piece& piece : pieces_) {
      if (piece.space == at.space && piece.region == at.region && at.offset_bytes >= piece.begin &&
          at.offset_bytes <= piece.end) {
        return {Location::Space::kRegion, 0, shift + piece.at + at.offset_bytes - piece.begin};
      }
    }
    WAM_CHECK(false) << "an operand in no piece";
    return at;
  }
  // Where things lie, for telling steps apart.
  std::string layout(const Step& step) const {
    std::string text;
    for (const auto* list : {&step.inputs, &step.outputs}) {
      for (const Operand& operand : *list) {
        const Location at = moved(operand.at, 0);
        text += at.space == Location::Space::kConstant ? "c" : fmt::format("{},", at.offset_bytes);
      }
    }
    return text;
  }

 private:
  void add(const Location& at, int64_t bytes) {
    if (at.space == Location::Space::kConstant) return;
    pieces_.push_back({at.space, at.region, at.offset_bytes, at.offset_bytes + bytes});
  }

  void merge() {
    std::ranges::stable_sort(pieces_, [](const Piece& a, const Piece& b) {
      return std::tie(a.space, a.region, a.begin) < std::tie(b.space, b.region, b.begin);
    });
    std::vector<Piece> merged;
    for (const Piece& piece : pieces_) {
      Piece* last = merged.empty() ? nullptr : &merged.back();
      if (last != nullptr && last->space == piece.space && last->region == piece.region &&
          piece.begin < last->end) {
        last->end = std::max(last->end, piece.end);
      } else {
        merged.push_back(piece);
      }
    }
    pieces_ = std::move(merged);
    for (Piece& piece : pieces_) {
      piece.at = bytes_;
      bytes_ += align(std::max<int64_t>(piece.end - piece.begin, 1));
    }
  }

  std::vector<Piece> pieces_;
  int64_t bytes_ = 0;
};

std::string types_text(const Step& step) {
  std::string text;
  for (const Operand& operand : step.inputs)
    text += (text.empty() ? "" : ", ") + operand.type.to_string();
  text += " ->";
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    text += (i == 0 ? " " : ", ") + step.outputs[i].type.to_string();
  }
  return text;
}

// Uniform numbers in the float inputs; a usual step's in AdamW's scalars. Integers that are no
// constants stay zero, which is a valid index.
void fill(const Program& program, Memory& memory) {
  for (const Step& step : program.steps) {
    const bool adamw = step.op.starts_with("adamw");
    for (const Operand& operand : step.inputs) {
      if (operand.at.space == Location::Space::kConstant) continue;
      const TensorType& type = operand.type;
      if (adamw && type == TensorType{DType::kF32, Shape{8}}) {
        const float scalars[8] = {1e-5f, 0.5f, 0.1f, 0.9f, 0, 1e-5f, 0, 0};
        memory.write_region(kRegion, operand.at.offset_bytes, scalars, sizeof scalars);
      } else if (type.dtype == DType::kF32 || type.dtype == DType::kBF16) {
        // AdamW takes roots of second moments.
        memory.fill_uniform(kRegion, operand.at.offset_bytes, type.shape.num_elements(), type.dtype,
                            adamw ? 0.0f : -1.0f, 1.0f, 7);
      }
    }
  }
}

// A step to be timed, and how often it occurs.
struct Candidate {
  const Program* program = nullptr;
  const Step* step = nullptr;
  int64_t calls = 0;
};

// What makes two steps the same kernel with the same work.
std::string key_of(const Step& step) {
  return step.op + step.attrs.to_string() + types_text(step) + Pieces(step).layout(step);
}

void collect(const Program& program, int64_t runs, const std::string& only,
             std::map<std::string, Candidate>& found) {
  for (const Step& step : program.steps) {
    if (step.op.find(only) == std::string::npos) continue;
    Candidate& candidate = found[key_of(step)];
    if (candidate.step == nullptr) candidate = {&program, &step, 0};
    candidate.calls += runs;
  }
}

class Timer {
 public:
  explicit Timer(const StepBenchOptions& options)
      : options_(options), device_(open_device(options.device)), gpu_(is_cuda(options.device)) {}

  const Device& device() const { return *device_; }

  // Seconds of one call, which should take about `expected`.
  double time(const Program& from, const Step& step, double expected) const {
    constexpr double kRunSeconds = 3e-3;
    constexpr int64_t kMostCopies = 24, kMostLaunches = 200, kRuns = 5;
    const auto most = [](double x, int64_t bound) {
      return std::clamp<int64_t>(static_cast<int64_t>(std::min(x, 1e6)), 1, bound);
    };
    const int64_t copies =
        gpu_ ? most(kColdBytes / std::max(1.0, step.cost.bytes), kMostCopies) : 1;
    const int64_t launches = std::max(copies, most(kRunSeconds / expected, gpu_ ? kMostLaunches : 2));
    const Program program = isolate(from, step, copies, launches);
    const Program* programs[] = {&program};
    const std::shared_ptr<Memory> memory = device_->allocate(combine(programs));
    fill(program, *memory);
    const auto executor = device_->load(program, memory, {.mode = options_.exec});
    const auto run = [&] {
      executor->run();
      executor->synchronize();
    };
    for (int i = 0; i < 2; ++i) run();  // loads code, captures
    return median_seconds(kRuns, run) / static_cast<double>(launches);
  }

  // Seconds of a graph's only step.
  double time(const Graph& graph, double expected) const {
    const Program program = lower(graph, device_->target());
    WAM_CHECK(program.steps.size() == 1) << program.steps.size() << " steps";
    return time(program, program.steps.front(), expected);
  }

 private:
  const StepBenchOptions& options_;
  std::unique_ptr<Device> device_;
  bool gpu_;
};

// The best of what copies, what reads two and writes one, and what only reads: byte/s.
double measured_copy_rate(const Timer& timer, bool gpu) {
  const int64_t elements = int64_t{1} << (gpu ? 28 : 24);
  const TensorType type{DType::kF32, Shape{elements}};
  const auto rate = [&](double tensors, const auto& build) {
    Graph graph("bandwidth");
    Builder b(graph);
    build(b, graph);
    return tensors * static_cast<double>(type.size_bytes()) / timer.time(graph, gpu ? 6e-4 : 1e-2);
  };
  const double copied = rate(2, [&](Builder& b, Graph& g) { g.add_output("y", copy(b, g.add_input("x", type))); });
  const double added = rate(3, [&](Builder& b, Graph& g) {
    g.add_output("y", add(b, g.add_input("x", type), g.add_input("z", type)));
  });
  const double read = rate(1, [&](Builder& b, Graph& g) {
    g.add_output("y", sum_squares(b, g.add_input("x", type)));
  });
  return std::max({copied, added, read});
}

double measured_product_rate(const Timer& timer, bool gpu, DType dtype) {
  const int64_t n = gpu ? 8192 : 1024;
  Graph graph("product");
  Builder b(graph);
  const ValueId x = graph.add_input("x", {dtype, Shape{n, n}}),
                w = graph.add_input("w", {dtype, Shape{n, n}});
  graph.add_output("y", linear(b, x, w, {}));
  const double side = static_cast<double>(n);
  return 2 * side * side * side / timer.time(graph, 2e-3);
}

}  // namespace

Program isolate(const Program& from, const Step& step, int64_t copies, int64_t launches) {
  const Pieces pieces(step);
  Program program{.name = step.op};
  program.regions.push_back(
      {kRegion, copies * pieces.bytes(), {{StateRole::kScalar, copies * pieces.bytes()}}});
  std::map<int32_t, int32_t> constants;
  const auto move = [&](Location at, int64_t shift) {
    if (at.space != Location::Space::kConstant) return pieces.moved(at, shift);
    const auto [known, is_new] =
        constants.emplace(at.region, static_cast<int32_t>(program.constants.size()));
    if (is_new) program.constants.push_back(from.constants[static_cast<size_t>(at.region)]);
    at.region = known->second;
    return at;
  };
  for (int64_t i = 0; i < launches; ++i) {
    const int64_t shift = i % copies * pieces.bytes();
    Step moved = step;
    for (auto* list : {&moved.inputs, &moved.outputs}) {
      for (Operand& operand : *list) operand.at = move(operand.at, shift);
    }
    if (moved.workspace_bytes > 0) moved.workspace = move(moved.workspace, shift);
    program.steps.push_back(std::move(moved));
  }
  return program;
}

KernelBench bench_kernels(const StepBenchOptions& options, const std::string& only) {
  const Timer timer(options);
  const bool gpu = is_cuda(options.device);
  KernelBench bench{.device = timer.device().name(),
                    .copy_rate = measured_copy_rate(timer, gpu),
                    .product_rate = measured_product_rate(timer, gpu, options.step.dtype)};
  const StepPrograms programs = build_bench_step(options, limit_of(timer.device(), gpu), nullptr);
  std::map<std::string, Candidate> found;
  for (int64_t i = 0; i < options.step.accumulate; ++i) {
    collect(programs.micro_batch(i, options.step.accumulate), 1, only, found);
  }
  if (options.with_optimizer) collect(programs.optimizer, 1, only, found);
  for (const auto& [key, candidate] : found) {
    const Step& step = *candidate.step;
    const double by_bytes = step.cost.bytes / bench.copy_rate,
                 by_flops = step.cost.flops / bench.product_rate;
    const double floor = std::max(by_bytes, by_flops);
    bench.kernels.push_back({.op = step.op,
                             .label = step.label,
                             .types = types_text(step),
                             .calls = candidate.calls,
                             .seconds = timer.time(*candidate.program, step, floor + 3e-6),
                             .flops = step.cost.flops,
                             .bytes = step.cost.bytes,
                             .floor_seconds = floor,
                             .bound_by_bytes = by_bytes > by_flops});
  }
  std::ranges::sort(bench.kernels, std::greater{},
                    [](const KernelTime& k) { return k.seconds * static_cast<double>(k.calls); });
  return bench;
}

std::string describe(const KernelBench& b) {
  std::string text = fmt::format("{}\na large copy {:.1f} GB/s, a large product {:.2f} TFLOP/s\n",
                                 b.device, 1e-9 * b.copy_rate, 1e-12 * b.product_rate);
  double total = 0, floor = 0;
  for (const KernelTime& k : b.kernels) {
    total += k.seconds * static_cast<double>(k.calls);
    floor += k.floor_seconds * static_cast<double>(k.calls);
  }
  text += fmt::format(
      "{} kernels; one optimizer step of them takes {:.2f} ms, at their floors {:.2f} ms\n",
      b.kernels.size(), 1e3 * total, 1e3 * floor);
  text += fmt::format("{:<22} {:<24} {:>6} {:>10} {:>10} {:>5} {:>7} {:>9} {:>9} {:>9} {:>6}  {}\n",
                      "op", "first in", "calls", "us", "floor us", "by", "% of it", "TFLOP/s",
                      "GB/s", "ms a step", "%", "types");
  for (const KernelTime& k : b.kernels) {
    const double all = k.seconds * static_cast<double>(k.calls);
    text += fmt::format(
        "{:<22} {:<24} {:>6} {:>10.2f} {:>10.2f} {:>5} {:>7.1f} {:>9.2f} {:>9.1f} {:>9.3f} "
        "{:>6.2f}  {}\n",
        k.op, k.label, k.calls, 1e6 * k.seconds, 1e6 * k.floor_seconds,
        k.bound_by_bytes ? "bytes" : "flops", 100 * k.floor_seconds / k.seconds,
        1e-12 * k.flops / k.seconds, 1e-9 * k.bytes / k.seconds, 1e3 * all, 100 * all / total,
        k.types);
  }
  return text;
}

std::string to_json(const KernelBench& b) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelTime& k : b.kernels) {
    kernels.push_back({{"op", k.op},
                       {"label", k.label},
                       {"types", k.types},
                       {"calls", k.calls},
                       {"seconds", k.seconds},
                       {"flops", k.flops},
                       {"bytes", k.bytes},
                       {"floor_seconds", k.floor_seconds},
                       {"bound_by", k.bound_by_bytes ? "bytes" : "flops"}});
  }
  const nlohmann::json j = {{"device", b.device},
                            {"copy_bytes_per_second", b.copy_rate},
                            {"product_flops_per_second", b.product_rate},
                            {"kernels", kernels}};
  return j.dump(2) + "\n";
}

}  // namespace wam::train
