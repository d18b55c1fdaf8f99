#include "wam/train/bench_ablate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"
#include "wam/exec/cuda.h"
#include "wam/train/bench_rig.h"
#include "wam/train/device.h"
#include "wam/train/fit.h"

namespace wam::train {
namespace {

constexpr const char* kBest = "best";

struct Change {
  std::string name;
  std::function<void(StepBenchOptions&)> apply;
};

std::string micro_batch_name(int64_t size) { return fmt::format("micro-batch {}", size); }

void set_micro_batch(StepBenchOptions& o, int64_t size) {
  const int64_t samples = o.step.shape.batch * o.step.accumulate;
  o.step.shape.batch = size;
  o.step.accumulate = samples / size;
}

const std::vector<Change>& changes() {
  static const std::vector<Change> list = {
      {"no fusion", [](StepBenchOptions& o) { o.step.fuse = false; }},
      {"streamed", [](StepBenchOptions& o) { o.exec = ExecMode::kStream; }},
      {"recompute full",
       [](StepBenchOptions& o) { o.step.recompute.policy = RecomputePolicy::kFull; }},
      {"modulation for every token",
       [](StepBenchOptions& o) { o.step.shape.timesteps = TimestepLayout::kPerToken; }},
      {"padded prompts",
       [](StepBenchOptions& o) { o.step.shape.text_tokens = o.step.model.text_len; }},
      {"gradients in bf16",
       [](StepBenchOptions& o) {
         if (o.step.dtype == DType::kBF16) o.step.gradient_dtype = DType::kBF16;
       }},
  };
  return list;
}

std::string policy_text(const StepBenchOptions& o, const StepBench& b) {
  switch (o.step.recompute.policy) {
    case RecomputePolicy::kNone:
      return "none";
    case RecomputePolicy::kFull:
      return "full";
    default:
      return fmt::format("{:.1f} % of FLOPs",
                         b.flops == 0 ? 0.0 : 100 * b.recomputed_flops / b.flops);
  }
}

std::string setting_text(const StepBenchOptions& o, const StepBench& b) {
  return fmt::format("{} x {}, {}, recompute {}", o.step.shape.batch, o.step.accumulate,
                     o.exec == ExecMode::kGraph ? "graph" : "stream", policy_text(o, b));
}

class Ablater {
 public:
  Ablater(const AblateOptions& options, void (*progress)(const Ablation&))
      : options_(options), progress_(progress) {}

  std::vector<Ablation> run() {
    add(kBest, options_.best, "");
    const int64_t samples = options_.best.step.shape.batch * options_.best.step.accumulate;
    for (int64_t size = 1; size <= 32 && size <= samples; size *= 2) {
      if (samples % size != 0 || size == options_.best.step.shape.batch) continue;
      StepBenchOptions o = options_.best;
      set_micro_batch(o, size);
      if (o.step.recompute.policy == RecomputePolicy::kNone) {
        o.step.recompute.policy = RecomputePolicy::kBudget;  // none of it where there is room
      }
      if (wanted(micro_batch_name(size))) add(micro_batch_name(size), o, kBest);
    }
    for (const Change& change : changes()) {
      if (wanted(change.name)) add_change(change);
    }
    return std::move(done_);
  }

 private:
  bool wanted(const std::string& name) const {
    return options_.only.empty() || std::ranges::count(options_.only, name) > 0;
  }

  // In smaller micro-batches until it fits; then beside the same micro-batches of the best.
  void add_change(const Change& change) {
    StepBenchOptions o = options_.best;
    change.apply(o);
    std::string refusal, against = kBest;
    while (true) {
      try {
        return add(change.name, o, against, refusal);
      } catch (const PlanError& error) {
        if (refusal.empty()) refusal = error.what();
        const int64_t size = o.step.shape.batch / 2;
        if (o.step.shape.batch % 2 != 0) return give_up(change.name, refusal);
        set_micro_batch(o, size);
        against = micro_batch_name(size);
      }
    }
  }

  void give_up(const std::string& name, const std::string& refusal) {
    done_.push_back({.name = name, .refusal = refusal});
    progress_(done_.back());
  }

  void add(const std::string& name, const StepBenchOptions& options, const std::string& against,
           const std::string& refusal = "") {
    StepBenchOptions o = options;
    o.profile = o.trace = false;
    const auto other = std::ranges::find(done_, against, &Ablation::name);
    Ablation a{
        .name = name, .refusal = refusal, .ran = true, .bench = bench_step(o), .against = against};
    a.setting = setting_text(o, a.bench);
    if (other != done_.end() && other->ran)
      a.slower = a.bench.seconds / other->bench.seconds - 1;
    else
      a.against.clear();
    done_.push_back(std::move(a));
    progress_(done_.back());
  }

  const AblateOptions& options_;
  void (*progress_)(const Ablation&);
  std::vector<Ablation> done_;
};

double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

std::vector<std::string> ablation_names() {
  std::vector<std::string> names;
  for (int64_t size = 1; size <= 32; size *= 2) names.push_back(micro_batch_name(size));
  for (const Change& change : changes()) names.push_back(change.name);
  return names;
}

std::vector<Ablation> bench_ablate(const AblateOptions& options,
                                   void (*progress)(const Ablation&)) {
  const std::vector<std::string> known = ablation_names();
  for (const std::string& name : options.only) {
    if (std::ranges::count(known, name) > 0) continue;
    throw ConfigError({.where = "wam bench ablate --only",
                       .what = "there is no such ablation",
                       .got = quote(name),
                       .expected = "one of " + join(known, "; "),
                       .remedy = "Choose one of these, or leave --only out for all."});
  }
  return Ablater(options, progress).run();
}

std::string describe(const std::vector<Ablation>& ablations) {
  std::string text =
      fmt::format("{:<28} {:>10} {:>10} {:>9} {:>10} {:>9}  {:<16} {}\n", "", "samples/s",
                  "ms a step", "TFLOP/s", "memory GB", "slower %", "than", "run as");
  for (const Ablation& a : ablations) {
    if (!a.ran) {
      text += fmt::format("{:<28} does not fit: {}\n", a.name, a.refusal);
      continue;
    }
    const StepBench& b = a.bench;
    text +=
        fmt::format("{:<28} {:>10.2f} {:>10.2f} {:>9.2f} {:>10.2f} {:>9} {:>2}{:<16} {}{}\n",
                    a.name, static_cast<double>(b.samples) / b.seconds, 1e3 * b.seconds,
                    1e-12 * b.flops / b.seconds, 1e-9 * static_cast<double>(b.planned_bytes),
                    a.against.empty() ? "" : fmt::format("{:+.1f}", 100 * a.slower), "", a.against,
                    a.setting, a.refusal.empty() ? "" : " (larger micro-batches do not fit)");
  }
  return text;
}

std::string to_json(const std::vector<Ablation>& ablations) {
  nlohmann::json list = nlohmann::json::array();
  for (const Ablation& a : ablations) {
    const StepBench& b = a.bench;
    nlohmann::json j = {{"name", a.name}, {"ran", a.ran}, {"refusal", a.refusal}};
    if (a.ran) {
      j.update({{"setting", a.setting},
                {"against", a.against},
                {"slower", a.slower},
                {"device", b.device},
                {"samples", b.samples},
                {"micro_batch_size", b.micro_batch},
                {"step_seconds", b.seconds},
                {"samples_per_second", static_cast<double>(b.samples) / b.seconds},
                {"flops", b.flops},
                {"recomputed_flops", b.recomputed_flops},
                {"planned_bytes", b.planned_bytes},
                {"seen_bytes", b.seen_bytes}});
    }
    list.push_back(std::move(j));
  }
  return list.dump(2) + "\n";
}

TunedBench bench_tuned(const StepBenchOptions& options, int64_t rounds) {
  BenchRig rig(options);
  TunedBench bench{.device = rig.device().name(), .rounds = rounds};
  StepExecutors first = rig.load(false), tuned;
  bench.tuning_seconds = seconds_of([&] { tuned = rig.load(false, true); });
  for (int i = 0; i < 2; ++i) {
    for (StepExecutors* e : {&first, &tuned}) rig.run(*e);
  }
  std::vector<double> times[2];
  for (int64_t round = 0; round < rounds; ++round) {
    // Who begins changes: neither always finds the warmer card.
    const bool tuned_first = round % 2 == 1;
    double pair[2];
    for (const bool second : {false, true}) {
      const bool is_tuned = second != tuned_first;
      pair[is_tuned ? 1 : 0] = seconds_of([&] { rig.run(is_tuned ? tuned : first); });
    }
    for (int i = 0; i < 2; ++i) times[i].push_back(pair[i]);
    bench.wins += pair[1] < pair[0] ? 1 : 0;
  }
  bench.first_seconds = median(times[0]);
  bench.tuned_seconds = median(times[1]);
  bench.algorithms = cuda_algorithms();
  return bench;
}

std::string describe(const TunedBench& b) {
  return fmt::format(
      "{}\nfirst choice {:.2f} ms, tuned {:.2f} ms ({:+.2f} %), the tuned one faster in {} of {} "
      "rounds; tuning and "
      "loading took {:.1f} s\n",
      b.device, 1e3 * b.first_seconds, 1e3 * b.tuned_seconds,
      100 * (b.tuned_seconds / b.first_seconds - 1), b.wins, b.rounds, b.tuning_seconds);
}

}  // namespace wam::train
