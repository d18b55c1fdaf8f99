#include <omp.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <map>

#include "wam/base/check.h"
#include "wam/exec/cpu_bf16.h"
#include "wam/exec/cpu_memory.h"
#include "wam/kernels/kernel.h"

namespace wam {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A step with every address known.
struct BoundStep {
  std::unique_ptr<Kernel> kernel;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  void* workspace = nullptr;
};

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(const Program& program, std::shared_ptr<Memory> memory, const ExecOptions& options)
      : program_(program), memory_(std::move(memory)), options_(options) {
    WAM_CHECK(program_.arena.peak <= memory_->plan().arena_bytes) << program_.name;
    for (const Step& step : program_.steps) steps_.push_back(bind(step));
    if (options_.profile) profile_.resize(steps_.size());
  }

  const Program& program() const override { return program_; }
  void synchronize() override {}
  const std::vector<StepTime>& profile() const override { return profile_; }

  void run() override {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (options_.poison) poison(program_.steps[i]);
      const double step_start = options_.profile ? now() : 0;
      BoundStep& step = steps_[i];
      step.kernel->run({step.inputs, step.outputs, step.workspace, nullptr, options_.groups.get()});
      if (!options_.profile) continue;
      profile_[i].seconds += now() - step_start;
      ++profile_[i].runs;
    }
  }

  void write(std::string_view name, const HostTensor& value) override {
    const Operand& operand = find({&program_.inputs, &program_.states}, name);
    WAM_CHECK(value.type() == operand.type) << "'" << name << "' is " << operand.type.to_string()
                                            << ", written with " << value.type().to_string();
    std::memcpy(address(operand.at), value.data(), static_cast<size_t>(value.size_bytes()));
  }

  HostTensor read(std::string_view name) override {
    const Operand& operand = find({&program_.outputs, &program_.inputs, &program_.states}, name);
    HostTensor result(operand.type);
    std::memcpy(result.data(), address(operand.at), static_cast<size_t>(result.size_bytes()));
    return result;
  }

  void fetch(std::string_view name) override { fetched_[std::string(name)].push_back(read(name)); }

  HostTensor fetched(std::string_view name) override {
    std::deque<HostTensor>& queue = fetched_[std::string(name)];
    WAM_CHECK(!queue.empty()) << "'" << name << "' was not fetched";
    HostTensor value = std::move(queue.front());
    queue.pop_front();
    return value;
  }

  void copy_output(std::string_view output, int64_t bytes, Executor& to, std::string_view input,
                   int64_t offset_bytes) override {
    const Operand& from = find({&program_.outputs}, output);
    TensorType type;
    auto* base = static_cast<std::byte*>(to.input_address(input, type));
    WAM_CHECK(type.dtype == from.type.dtype && bytes >= 0 && bytes <= from.type.size_bytes() &&
              offset_bytes >= 0 && offset_bytes + bytes <= type.size_bytes())
        << from.type.to_string() << " into " << type.to_string() << " at " << offset_bytes;
    std::memcpy(base + offset_bytes, address(from.at), static_cast<size_t>(bytes));
  }

  void* input_address(std::string_view name, TensorType& type) override {
    const Operand& operand = find({&program_.inputs}, name);
    type = operand.type;
    return address(operand.at);
  }

 private:
  void* address(const Location& at) {
    switch (at.space) {
      case Location::Space::kArena:
        return static_cast<std::byte*>(memory_->arena_address()) + at.offset_bytes;
      case Location::Space::kRegion:
        return static_cast<std::byte*>(
                   memory_->region_address(program_.regions[static_cast<size_t>(at.region)].name)) +
               at.offset_bytes;
      case Location::Space::kConstant:
        return static_cast<std::byte*>(program_.constants[static_cast<size_t>(at.region)].data()) +
               at.offset_bytes;
    }
    return nullptr;
  }

  BoundStep bind(const Step& step) {
    BoundStep bound;
    bound.kernel = create_cpu_kernel(step);
    WAM_CHECK(bound.kernel != nullptr) << "no CPU kernel for '" << step.op << "'";
    for (const Operand& operand : step.inputs) bound.inputs.push_back(address(operand.at));
    for (const Operand& operand : step.outputs) bound.outputs.push_back(address(operand.at));
    if (step.workspace_bytes > 0) bound.workspace = address(step.workspace);
    return bound;
  }

  // Outputs that overwrite no input of the step get a NaN pattern, so that an element a kernel
  // forgets, or a read of memory nobody wrote, shows.
  void poison(const Step& step) {
    for (const Operand& output : step.outputs) {
      if (output.at.space != Location::Space::kArena) continue;
      bool in_place = false;
      for (const Operand& input : step.inputs) in_place = in_place || lies_in(input, output);
      if (!in_place) {
        std::memset(address(output.at), 0xFF, static_cast<size_t>(output.type.size_bytes()));
      }
    }
  }

  // An output may have an input's name: where to look decides.
  const Operand& find(std::initializer_list<const std::vector<NamedOperand>*> lists,
                      std::string_view name) const {
    for (const auto* list : lists) {
      for (const NamedOperand& entry : *list) {
        if (entry.name == name) return entry.operand;
      }
    }
    WAM_CHECK(false) << "program '" << program_.name << "' has nothing named '" << name << "'";
    return program_.outputs.front().operand;
  }

  Program program_;
  std::shared_ptr<Memory> memory_;
  ExecOptions options_;
  std::vector<BoundStep> steps_;
  std::vector<StepTime> profile_;
  std::map<std::string, std::deque<HostTensor>> fetched_;
};

class CpuDevice final : public Device {
 public:
  std::string name() const override { return "cpu"; }
  const Target& target() const override { return cpu_target(); }
  int64_t free_bytes() const override {
    return int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  }
  int64_t total_bytes() const override {
    return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  }
  std::shared_ptr<Memory> allocate(const MemoryPlan& plan) override {
    const int64_t total = total_bytes();
    if (plan.total_bytes() > total) {
      throw PlanError({.where = "cpu memory",
                       .what = "the plan is larger than this machine's memory",
                       .got = std::to_string(plan.total_bytes()) + " bytes",
                       .expected = "at most " + std::to_string(total) + " bytes",
                       .remedy = "Lower micro_batch_size, set recompute: full, or use a smaller model."});
    }
    return std::make_shared<CpuMemory>(plan);
  }
  std::unique_ptr<Executor> load(const Program& program, std::shared_ptr<Memory> memory,
                                 const ExecOptions& options) override {
    return std::make_unique<CpuExecutor>(program, std::move(memory), options);
  }
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

const Target& cpu_target() {
  static const Target target{
      "cpu", [](std::string_view op) { return find_cpu_kernel(op) != nullptr; }, cpu_workspace_bytes};
  return target;
}

}  // namespace wam
