// Devices, their memory, and executors that replay Programs on them. An executor is single-threaded
// from the outside; several executors of one device share its Memory and run one after another.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wam/plan/lower.h"
#include "wam/plan/memory_plan.h"
#include "wam/plan/program.h"

namespace wam {
struct RandomStream;  // base/random_stream.h
}
namespace wam::dist {
struct Groups;  // dist/groups.h
}

namespace wam {

// Where draw_uniform() writes: f32, or rounded to bf16, or, with a region for the rest, split in
// halves (tensor/split_float.h): the upper one here, the lower one, i16, there. Offsets in elements.
struct DrawTarget {
  std::string region;
  int64_t offset = 0;
  DType dtype = DType::kF32;  // or bf16
  std::string low_region = {};
};

// The regions and the arena of a MemoryPlan, allocated once. Regions start zeroed.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual const MemoryPlan& plan() const = 0;
  // Bytes [offset, offset + size) of a region from / to host memory. Blocking. InternalError if the
  // region is unknown or the range leaves it.
  virtual void read_region(const std::string& region, int64_t offset, void* data, int64_t size) = 0;
  virtual void write_region(const std::string& region, int64_t offset, const void* data,
                            int64_t size) = 0;
  // read_region() of a region at rest: whatever was enqueued to change it is known to have ended, and
  // nobody changes it meanwhile. Not ordered among what runs; callable from another thread.
  virtual void read_at_rest(const std::string& region, int64_t offset, void* data, int64_t size) {
    read_region(region, offset, data, size);
  }
  // Writes `count` elements (f32 or bf16) at byte `offset` of a region, made on the device: element e
  // is low + (high - low) u in f32, rounded to the type, with u the upper 24 bits of word e % 4 of
  // philox({e / 4, 0, 0}, seed) over 2^24. The same numbers on every device.
  virtual void fill_uniform(const std::string& region, int64_t offset, int64_t count, DType dtype,
                            float low, float high, uint64_t seed) = 0;
  // Writes `count` elements at `to`, made on the device: element e is float(low + (high - low) u) in
  // f64, u the e-th uniform() of `stream`. The same numbers on every device.
  virtual void draw_uniform(const DrawTarget& to, int64_t count, const RandomStream& stream,
                            double low, double high) = 0;
  // Device address of a region: for executors of the same device.
  virtual void* region_address(const std::string& region) = 0;
  virtual void* arena_address() = 0;
  // Host memory that read_region() fills at the device's best rate (pinned where that can be had).
  // Its pages are touched by who uses them first. PlanError if there is none.
  virtual std::shared_ptr<std::byte> host_buffer(int64_t bytes);
};

// Anonymous pages of the host, freed with the last owner. PlanError if they cannot be mapped.
std::shared_ptr<std::byte> map_host_pages(int64_t bytes);

enum class ExecMode { kStream, kGraph };

struct ExecOptions {
  ExecMode mode = ExecMode::kGraph;  // CPU has one way to run and ignores it
  bool profile = false;              // time each step; on GPU this forces kStream
  bool poison = false;               // fill arena outputs with NaN patterns before they are written
  // For the collectives of a program of several ranks. Null: a world of one.
  std::shared_ptr<const dist::Groups> groups = nullptr;
  // GPU, kGraph: captured are only the steps between collectives. So it is in any case where the
  // communicator cannot be captured. The same bits.
  bool cut_at_collectives = false;
  // GPU: time the algorithms of products that the table of choices (exec/cuda.h) lacks, in the arena,
  // whose contents are lost.
  bool tune = false;
};

struct StepTime {
  double seconds = 0;  // summed over runs
  int64_t runs = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual const Program& program() const = 0;
  // One replay. On GPU it only enqueues; read() and synchronize() wait.
  virtual void run() = 0;
  virtual void synchronize() = 0;
  // Inputs and states by name; type and size must match the program's. On GPU the copy of an input
  // goes through pinned memory and is ordered before the next run().
  virtual void write(std::string_view name, const HostTensor& value) = 0;
  // Outputs, inputs and states by name; waits for the last run.
  virtual HostTensor read(std::string_view name) = 0;
  // Enqueues the copy of a value, as the runs so far leave it, to the host. fetched() gives the
  // copies of a name in that order and waits only for the one it gives: later runs go on meanwhile.
  virtual void fetch(std::string_view name) = 0;
  virtual HostTensor fetched(std::string_view name) = 0;
  // Enqueues the copy of an output's first `bytes` to `offset_bytes` behind the start of `input` of
  // another executor on the same Memory; ordered like a run. The element types must be equal.
  virtual void copy_output(std::string_view output, int64_t bytes, Executor& to, std::string_view input,
                           int64_t offset_bytes) = 0;
  // Device address and type of an input, for copy_output() of the same device's executors.
  virtual void* input_address(std::string_view name, TensorType& type) = 0;
  // One entry a step of the program; empty without ExecOptions::profile.
  virtual const std::vector<StepTime>& profile() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  // "cpu", "cuda:0 NVIDIA H200"
  virtual const Target& target() const = 0;
  virtual int64_t free_bytes() const = 0;
  virtual int64_t total_bytes() const = 0;
  // Throws PlanError if the plan is larger than the memory there is.
  virtual std::shared_ptr<Memory> allocate(const MemoryPlan& plan) = 0;
  // `program` is copied. Its regions and arena must lie inside the memory's plan.
  virtual std::unique_ptr<Executor> load(const Program& program, std::shared_ptr<Memory> memory,
                                         const ExecOptions& options) = 0;
};

std::unique_ptr<Device> make_cpu_device();
// Target descriptions need no device; workspace sizes are pure functions.
const Target& cpu_target();

}  // namespace wam
