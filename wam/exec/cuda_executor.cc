#include "wam/exec/cuda_executor.h"

#include <cstring>
#include <deque>
#include <map>
#include <string>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/dist/groups.h"
#include "wam/exec/collective_lane.h"
#include "wam/exec/cuda_pieces.h"
#include "wam/kernels/cuda/gemm.h"
#include "wam/kernels/cuda/progress.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

using cuda::check;

// A step with every address known.
struct BoundStep {
  std::unique_ptr<Kernel> kernel;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  void* workspace = nullptr;
};

// Pinned memory for one input, twice, so that the host may fill one half while the other is copied.
class Staging {
 public:
  explicit Staging(size_t bytes) : bytes_(bytes) {
    check(cudaMallocHost(&data_, std::max<size_t>(2 * bytes, 1)), "pinned memory for an input");
    for (cudaEvent_t& event : events_) {
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    }
  }
  ~Staging() {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaFreeHost(data_);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void copy(void* to, const void* from, cudaStream_t stream) {
    next_ ^= 1;
    check(cudaEventSynchronize(events_[next_]), "waiting for an input's copy");
    void* half = static_cast<std::byte*>(data_) + next_ * bytes_;
    std::memcpy(half, from, bytes_);
    check(cudaMemcpyAsync(to, half, bytes_, cudaMemcpyHostToDevice, stream), "copying an input");
    check(cudaEventRecord(events_[next_], stream), "copying an input");
  }

 private:
  size_t bytes_;
  void* data_ = nullptr;
  cudaEvent_t events_[2] = {};
  size_t next_ = 0;
};

// Copies on their way to the host: each has pinned memory and an event of its own, used again once
// it was read.
class Fetches {
 public:
  Fetches() = default;
  ~Fetches() {
    for (const auto& slot : slots_) {
      cudaEventDestroy(slot->done);
      cudaFreeHost(slot->data);
    }
  }
  Fetches(const Fetches&) = delete;
  Fetches& operator=(const Fetches&) = delete;

  void enqueue(const std::string& name, const void* from, const TensorType& type, cudaStream_t stream) {
    Slot& slot = take(static_cast<size_t>(std::max<int64_t>(type.size_bytes(), 1)));
    slot.type = type;
    check(cudaMemcpyAsync(slot.data, from, static_cast<size_t>(type.size_bytes()), cudaMemcpyDeviceToHost,
                          stream),
          "fetching a value");
    check(cudaEventRecord(slot.done, stream), "fetching a value");
    queues_[name].push_back(&slot);
  }

  // Waits; the status is the event's.
  cudaError_t pop(const std::string& name, HostTensor& value) {
    std::deque<Slot*>& queue = queues_[name];
    WAM_CHECK(!queue.empty()) << "'" << name << "' was not fetched";
    Slot& slot = *queue.front();
    const cudaError_t status = cudaEventSynchronize(slot.done);
    if (status != cudaSuccess) return status;
    queue.pop_front();
    value = HostTensor(slot.type);
    std::memcpy(value.data(), slot.data, static_cast<size_t>(value.size_bytes()));
    slot.in_use = false;
    return status;
  }

 private:
  struct Slot {
    void* data = nullptr;
    size_t bytes = 0;
    cudaEvent_t done = nullptr;
    TensorType type;
    bool in_use = false;
  };

  Slot& take(size_t bytes) {
    for (const auto& slot : slots_) {
      if (slot->in_use || slot->bytes != bytes) continue;
      slot->in_use = true;
      return *slot;
    }
    auto slot = std::make_unique<Slot>();
    check(cudaMallocHost(&slot->data, bytes), "pinned memory for a value");
    check(cudaEventCreateWithFlags(&slot->done, cudaEventDisableTiming), "cudaEventCreate");
    slot->bytes = bytes;
    slot->in_use = true;
    slots_.push_back(std::move(slot));
    return *slots_.back();
  }

  std::vector<std::unique_ptr<Slot>> slots_;
  std::map<std::string, std::deque<Slot*>> queues_;
};

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(const Program& program, std::shared_ptr<CudaMemory> memory,
               const ExecOptions& options)
      : program_(program), memory_(std::move(memory)), options_(options) {
    WAM_CHECK(program_.arena.peak <= memory_->plan().arena_bytes) << program_.name;
    upload_constants();
    for (const Step& step : program_.steps) steps_.push_back(bind(step));
    if (options_.groups != nullptr && !options_.profile) lane_ = std::make_unique<CollectiveLane>(program_);
    if (options_.tune) tune_products();
    if (!options_.profile) return;
    profile_.resize(steps_.size());
    events_.resize(steps_.size() + 1);
    for (cudaEvent_t& event : events_) check(cudaEventCreate(&event), "cudaEventCreate");
  }

  ~CudaExecutor() override {
    cudaStreamSynchronize(stream());
    for (const Piece& piece : pieces_) {
      if (piece.graph != nullptr) cudaGraphExecDestroy(piece.graph);
    }
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaFree(constants_);
  }

  const Program& program() const override { return program_; }
  const std::vector<StepTime>& profile() const override { return profile_; }

  void run() override {
    if (options_.profile) return run_profiled();
    if (options_.mode == ExecMode::kStream || !ran_) {
      progress_.begin(stream());
      for (size_t i = 0; i < steps_.size(); ++i) {
        run_step(i, lane_.get());
        progress_.reached(static_cast<int>(i) + 1, stream());
      }
      ran_ = true;
      return;
    }
    if (pieces_.empty()) pieces_ = pieces_of(program_, cuts());
    for (Piece& piece : pieces_) replay(piece);
  }

  void synchronize() override { demand(cudaStreamSynchronize(stream())); }

  void write(std::string_view name, const HostTensor& value) override {
    const Operand& operand = written(name);
    WAM_CHECK(value.type() == operand.type) << "'" << name << "' is " << operand.type.to_string()
                                            << ", written with " << value.type().to_string();
    const auto bytes = static_cast<size_t>(value.size_bytes());
    if (bytes == 0) return;
    if (!is_input(name)) {
      check(cudaMemcpyAsync(address(operand.at), value.data(), bytes, cudaMemcpyHostToDevice,
                            stream()),
            "writing a state");
      return synchronize();
    }
    auto found = staging_.find(name);
    if (found == staging_.end()) {
      found = staging_.emplace(std::string(name), std::make_unique<Staging>(bytes)).first;
    }
    found->second->copy(address(operand.at), value.data(), stream());
  }

  HostTensor read(std::string_view name) override {
    const Operand& operand = readable(name);
    HostTensor result(operand.type);
    synchronize();
    check(
        cudaMemcpyAsync(result.data(), address(operand.at),
                        static_cast<size_t>(result.size_bytes()), cudaMemcpyDeviceToHost, stream()),
        "reading a value");
    synchronize();
    return result;
  }

  void fetch(std::string_view name) override {
    const Operand& operand = readable(name);
    fetches_.enqueue(std::string(name), address(operand.at), operand.type, stream());
  }

  HostTensor fetched(std::string_view name) override {
    HostTensor value;
    demand(fetches_.pop(std::string(name), value));
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
    check(cudaMemcpyAsync(base + offset_bytes, address(from.at), static_cast<size_t>(bytes),
                          cudaMemcpyDeviceToDevice, stream()),
          "copying an output");
  }

  void* input_address(std::string_view name, TensorType& type) override {
    WAM_CHECK(is_input(name)) << "'" << name << "' is no input of " << program_.name;
    const Operand& operand = find({&program_.inputs}, name);
    type = operand.type;
    return address(operand.at);
  }

 private:
  cudaStream_t stream() const { return memory_->stream(); }

  void demand(cudaError_t status) {
    if (status == cudaSuccess) return;
    throw DeviceError(
        {.where = where_it_stopped(),
         .what = "the device reports an error; nothing more can run on it",
         .got = std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status),
         .remedy = pieces_.empty() ? "Run again; if it comes back, report it with this line."
                                     : "Run with exec: stream to learn which op it is."});
  }

  void upload_constants() {
    int64_t total = 0;
    for (const HostTensor& constant : program_.constants) {
      constant_offsets_.push_back(total);
      total += cuda::round_up(constant.size_bytes(), 256);
    }
    void* memory = nullptr;
    check(cudaMalloc(&memory, static_cast<size_t>(std::max<int64_t>(total, 1))),
          "memory for constants");
    constants_ = static_cast<std::byte*>(memory);
    for (size_t i = 0; i < program_.constants.size(); ++i) {
      const HostTensor& constant = program_.constants[i];
      check(cudaMemcpyAsync(constants_ + constant_offsets_[i], constant.data(),
                            static_cast<size_t>(constant.size_bytes()), cudaMemcpyHostToDevice,
                            stream()),
            "uploading a constant");
    }
    check(cudaStreamSynchronize(stream()), "uploading constants");
  }

  void* address(const Location& at) {
    switch (at.space) {
      case Location::Space::kArena:
        return static_cast<std::byte*>(memory_->arena_address()) + at.offset_bytes;
      case Location::Space::kRegion:
        return static_cast<std::byte*>(
                   memory_->region_address(program_.regions[static_cast<size_t>(at.region)].name)) +
               at.offset_bytes;
      case Location::Space::kConstant:
        return constants_ + constant_offsets_[static_cast<size_t>(at.region)] + at.offset_bytes;
    }
    return nullptr;
  }

  BoundStep bind(const Step& step) {
    const KernelDef* def = find_cuda_kernel(step.op);
    WAM_CHECK(def != nullptr) << "no CUDA kernel for '" << step.op << "'";
    std::vector<TensorType> in, out;
    for (const Operand& operand : step.inputs) in.push_back(operand.type);
    for (const Operand& operand : step.outputs) out.push_back(operand.type);
    BoundStep bound;
    try {
      bound.kernel = def->create({in, out, step.attrs});
    } catch (Error& error) {
      error.add_context(describe(step));
      throw;
    }
    for (const Operand& operand : step.inputs) bound.inputs.push_back(address(operand.at));
    for (const Operand& operand : step.outputs) bound.outputs.push_back(address(operand.at));
    if (step.workspace_bytes > 0) bound.workspace = address(step.workspace);
    return bound;
  }

  void tune_products() {
    for (const BoundStep& step : steps_) {
      auto* tunable = dynamic_cast<cuda::Tunable*>(step.kernel.get());
      if (tunable != nullptr)
        tunable->tune(memory_->arena_address(), memory_->plan().arena_bytes, stream());
    }
  }

  void run_step(size_t i, CollectiveLane* lane) {
    if (options_.poison) poison(program_.steps[i]);
    BoundStep& step = steps_[i];
    try {
      const cudaStream_t on = lane != nullptr ? lane->begin(i, stream()) : stream();
      step.kernel->run({step.inputs, step.outputs, step.workspace, on, options_.groups.get()});
      if (lane != nullptr) lane->end(i, stream());
    } catch (Error& error) {
      error.add_context(describe(program_.steps[i]));
      throw;
    }
  }

  void run_profiled() {
    check(cudaEventRecord(events_[0], stream()), "cudaEventRecord");
    for (size_t i = 0; i < steps_.size(); ++i) {
      run_step(i, nullptr);
      check(cudaEventRecord(events_[i + 1], stream()), "cudaEventRecord");
    }
    synchronize();
    for (size_t i = 0; i < steps_.size(); ++i) {
      float ms = 0;
      check(cudaEventElapsedTime(&ms, events_[i], events_[i + 1]), "cudaEventElapsedTime");
      profile_[i].seconds += 1e-3 * static_cast<double>(ms);
      ++profile_[i].runs;
    }
  }

  // Collectives through host memory wait for the stream: no graph can hold them.
  bool cuts() const {
    return options_.groups != nullptr &&
           (options_.cut_at_collectives || !options_.groups->can_be_captured());
  }

  // The lane's waits lie inside a graph that holds collectives, and between graphs that do not.
  void replay(Piece& piece) {
    if (piece.streamed) {
      for (size_t i = piece.begin; i < piece.end; ++i) run_step(i, lane_.get());
      return;
    }
    CollectiveLane* outside = cuts() ? lane_.get() : nullptr;
    if (piece.graph == nullptr) piece.graph = capture(piece, cuts() ? nullptr : lane_.get());
    if (outside != nullptr) outside->begin(piece.begin, stream());
    check(cudaGraphLaunch(piece.graph, stream()), "cudaGraphLaunch");
    if (outside != nullptr) outside->end(piece.end - 1, stream());
  }

  cudaGraphExec_t capture(const Piece& piece, CollectiveLane* lane) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    try {
      for (size_t i = piece.begin; i < piece.end; ++i) run_step(i, lane);
    } catch (...) {
      cudaStreamEndCapture(stream(), &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream(), &graph), "cudaStreamEndCapture");
    cudaGraphExec_t result = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&result, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "cudaGraphInstantiate");
    check(cudaGraphUpload(result, stream()), "cudaGraphUpload");
    return result;
  }

  // As on CPU: NaN patterns in outputs that overwrite no input.
  void poison(const Step& step) {
    for (const Operand& output : step.outputs) {
      if (output.at.space != Location::Space::kArena || output.type.size_bytes() == 0) continue;
      bool in_place = false;
      for (const Operand& input : step.inputs) in_place = in_place || lies_in(input, output);
      if (in_place) continue;
      check(cudaMemsetAsync(address(output.at), 0xFF, static_cast<size_t>(output.type.size_bytes()),
                            stream()),
            "poisoning an output");
    }
  }

  std::string describe(const Step& step) const {
    return program_.name + ", " + step.op + (step.label.empty() ? "" : " of " + step.label);
  }

  // Streamed runs note each step on the host as it ends.
  std::string where_it_stopped() const {
    const auto reached = static_cast<size_t>(progress_.last());
    if (!pieces_.empty() || reached >= program_.steps.size()) return program_.name;
    return describe(program_.steps[reached]);
  }

  bool is_input(std::string_view name) const {
    for (const NamedOperand& entry : program_.inputs) {
      if (entry.name == name) return true;
    }
    return false;
  }

  using Lists = std::initializer_list<const std::vector<NamedOperand>*>;
  // An input and an output may have one name: who writes means the input, who reads the output.
  const Operand& written(std::string_view name) const {
    return find({&program_.inputs, &program_.states}, name);
  }
  const Operand& readable(std::string_view name) const {
    return find({&program_.outputs, &program_.inputs, &program_.states}, name);
  }
  const Operand& find(Lists lists, std::string_view name) const {
    for (const auto* list : lists) {
      for (const NamedOperand& entry : *list) {
        if (entry.name == name) return entry.operand;
      }
    }
    WAM_CHECK(false) << "program '" << program_.name << "' has nothing named '" << name << "'";
    return program_.outputs.front().operand;
  }

  Program program_;
  std::shared_ptr<CudaMemory> memory_;
  ExecOptions options_;
  std::byte* constants_ = nullptr;
  std::vector<int64_t> constant_offsets_;
  std::vector<BoundStep> steps_;
  std::map<std::string, std::unique_ptr<Staging>, std::less<>> staging_;
  Fetches fetches_;
  cuda::Progress progress_;
  std::unique_ptr<CollectiveLane> lane_;  // null in a world of one
  std::vector<cudaEvent_t> events_;
  std::vector<StepTime> profile_;
  std::vector<Piece> pieces_;  // empty until the second run
  bool ran_ = false;
};

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(const Program& program,
                                             std::shared_ptr<CudaMemory> memory,
                                             const ExecOptions& options) {
  return std::make_unique<CudaExecutor>(program, std::move(memory), options);
}

}  // namespace wam
