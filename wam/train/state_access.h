// Weights and moments of a training run by checkpoint name, wherever they live. CPU keeps float32;
// the CUDA build's split master has its own implementation of the same reads and writes.
#pragma once

#include "wam/exec/executor.h"
#include "wam/models/params.h"
#include "wam/models/weights.h"

namespace wam::train {

// Access to one of the buffers that mirror the parameters: weights, first or second moment.
enum class StateKind : uint8_t { kWeight, kFirstMoment, kSecondMoment };

class StateAccess {
 public:
  StateAccess(const ParamSet& params, std::shared_ptr<Memory> memory)
      : params_(params), memory_(std::move(memory)) {}

  const ParamSet& params() const { return params_; }
  HostTensor read(StateKind kind, const Param& param, const ParamPart& part) const;
  void write(StateKind kind, const Param& param, const ParamPart& part, const HostTensor& value);
  PartWriter writer(StateKind kind) {
    return [this, kind](const Param& param, const ParamPart& part, const HostTensor& value) {
      write(kind, param, part, value);
    };
  }

 private:
  static std::string region(StateKind kind, const Param& param);
  const ParamSet& params_;
  std::shared_ptr<Memory> memory_;
};

}  // namespace wam::train
