// A frozen encoder's graph, lowered for CPU, with weights from a golden file.
#pragma once

#include <functional>

#include "tests/golden/golden.h"
#include "wam/exec/executor.h"
#include "wam/graph/verify.h"
#include "wam/models/params.h"

namespace wam::golden {

// f32 tensors of the file "<prefix><part name>" into the set's buffers. Parts that a file lacks
// fail.
inline void load_frozen(const ParamSet& set, const File& file, Memory& memory) {
  for (const Param& param : set.params()) {
    for (const ParamPart& part : param.parts) {
      ASSERT_TRUE(file.has("param." + part.name)) << part.name;
      const HostTensor value = file.f32("param." + part.name);
      ASSERT_EQ(value.shape().to_string(), part.shape.to_string()) << part.name;
      memory.write_region(param.region, (param.offset_elements + part.offset_elements) * 4,
                          value.data(), value.size_bytes());
    }
  }
}

// `build` declares inputs and outputs of the graph.
class EncoderRun {
 public:
  EncoderRun(const File& file, const std::function<void(Graph&, ParamUser&)>& build) {
    Graph graph("encoder");
    Builder b(graph);
    ParamUser user(b, params_, DType::kF32);
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
  std::unique_ptr<Device> device_ = make_cpu_device();
  ParamSet params_{"frozen", /*trainable=*/false};
  Program program_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace wam::golden
