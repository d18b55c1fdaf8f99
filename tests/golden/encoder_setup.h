// A frozen encoder's graph with weights from a golden file, lowered for the CPU in float32, or as
// WAM_GOLDEN_DEVICE (cpu, cuda) and WAM_GOLDEN_DTYPE (f32, bf16) say.
#pragma once

#include <functional>

#include "tests/golden/golden.h"
#include "wam/exec/cuda.h"
#include "wam/graph/verify.h"
#include "wam/models/params.h"

namespace wam::golden {

inline std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}
inline bool on_cuda() { return environment("WAM_GOLDEN_DEVICE", "cpu") == "cuda"; }
inline DType compute_type() { return parse_dtype(environment("WAM_GOLDEN_DTYPE", "f32")); }

// On a CPU another order of sums than the published code's; on a GPU other functions too. In bf16
// some sixty roundings in a row each add up to 2^-9 of a value, at random: sqrt(60) 2^-9 = 1.5e-2
// for the autoencoders and CLIP; UMT5 does not scale its scores, so that roundings of queries and
// keys pass through the softmax twice as large and more. Factor 2 to 3 of room.
inline double bound() {
  if (compute_type() == DType::kBF16) return 5e-2;
  return on_cuda() ? 1e-4 : 1e-5;
}

// f32 tensors of the file "<prefix><part name>" into the set's buffers. Parts that a file lacks
// fail.
inline void load_frozen(const ParamSet& set, const File& file, Memory& memory) {
  for (const Param& param : set.params()) {
    for (const ParamPart& part : param.parts) {
      ASSERT_TRUE(file.has("param." + part.name)) << part.name;
      const HostTensor value = file.f32("param." + part.name);
      ASSERT_EQ(value.shape().to_string(), part.shape.to_string()) << part.name;
      const HostTensor typed = value.to(compute_type());
      memory.write_region(param.region,
                          (param.offset_elements + part.offset_elements) * size_bytes(typed.dtype()),
                          typed.data(), typed.size_bytes());
    }
  }
}

// `build` declares inputs and outputs of the graph.
class EncoderRun {
 public:
  EncoderRun(const File& file, const std::function<void(Graph&, ParamUser&)>& build) {
    Graph graph("encoder");
    Builder b(graph);
    ParamUser user(b, params_, compute_type());
    build(graph, user);
    verify(graph);
    program_ = lower(graph, device_->target());
    const Program* programs[] = {&program_};
    memory_ = device_->allocate(combine(programs));
    load_frozen(params_, file, *memory_);
    executor_ = device_->load(program_, memory_, {.poison = true});
  }

  void write(const std::string& name, const HostTensor& value) { executor_->write(name, value); }
  void run() { executor_->run(); }
  HostTensor read(const std::string& name) { return executor_->read(name); }
  const ParamSet& params() const { return params_; }

 private:
  std::unique_ptr<Device> device_ = on_cuda() ? make_cuda_device() : make_cpu_device();
  ParamSet params_{"frozen", /*trainable=*/false};
  Program program_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace wam::golden
