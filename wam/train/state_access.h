// Weights and moments of a training run by checkpoint name, wherever they live. Values are the
// float32 ones: a master split in two halves (dtype bf16) is joined and taken apart here, without
// changing a bit.
#pragma once

#include "wam/exec/executor.h"
#include "wam/models/params.h"
#include "wam/models/weights.h"

namespace wam::train {

// Access to one of the buffers that mirror the parameters: weights, first or second moment.
enum class StateKind : uint8_t { kWeight, kFirstMoment, kSecondMoment };

class StateAccess {
 public:
  // `dtype`: of the weights as the model reads them; bf16 has its rest in low_region().
  StateAccess(const ParamSet& params, std::shared_ptr<Memory> memory, DType dtype = DType::kF32)
      : params_(params), memory_(std::move(memory)), dtype_(dtype) {}

  const ParamSet& params() const { return params_; }
  HostTensor read(StateKind kind, const Param& param, const ParamPart& part) const;
  void write(StateKind kind, const Param& param, const ParamPart& part, const HostTensor& value);
  PartWriter writer(StateKind kind) {
    return [this, kind](const Param& param, const ParamPart& part, const HostTensor& value) {
      write(kind, param, part, value);
    };
  }

 private:
  bool is_split(StateKind kind) const { return kind == StateKind::kWeight && dtype_ == DType::kBF16; }
  const ParamSet& params_;
  std::shared_ptr<Memory> memory_;
  DType dtype_;
};

}  // namespace wam::train
