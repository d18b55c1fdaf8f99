// Weights and moments of a training run by checkpoint name, wherever they live. Values are the
// float32 ones: a master split in two halves (dtype bf16) is joined and taken apart here, without
// changing a bit. Of states that are divided over ranks this rank keeps a part of every flat
// buffer.
#pragma once

#include "wam/dist/transport.h"
#include "wam/exec/executor.h"
#include "wam/models/params.h"
#include "wam/models/weights.h"
#include "wam/train/sharding.h"

namespace wam::train {

// Access to one of the buffers that mirror the parameters: weights, first or second moment.
enum class StateKind : uint8_t { kWeight, kFirstMoment, kSecondMoment };

class StateAccess {
 public:
  // `dtype`: of the weights as the model reads them; bf16 has its rest in low_region().
  StateAccess(const ParamSet& params, std::shared_ptr<Memory> memory, DType dtype = DType::kF32,
              const Sharding& sharding = {})
      : params_(params), memory_(std::move(memory)), dtype_(dtype), sharding_(sharding) {}

  // The same states in another memory: a copy's.
  StateAccess on(std::shared_ptr<Memory> memory) const {
    return StateAccess(params_, std::move(memory), dtype_, sharding_);
  }
  const ParamSet& params() const { return params_; }
  const Sharding& sharding() const { return sharding_; }
  // A whole tensor; states of this kind must not be divided.
  HostTensor read(StateKind kind, const Param& param, const ParamPart& part) const;
  // The same of any state, on rank `owner`; the others get an empty tensor. All ranks call it
  // together. Only those with a piece of the tensor, and the owner, communicate.
  HostTensor collect(StateKind kind, const Param& param, const ParamPart& part, int owner,
                     dist::Transport& transport) const;
  // Of divided states, what falls into this rank's part is written.
  void write(StateKind kind, const Param& param, const ParamPart& part, const HostTensor& value);
  // Name of a parameter of which this rank keeps a number that is not finite, moments included; empty
  // if there is none. Reads everything: for finding out whose fault something was.
  std::string first_non_finite() const;
  // Draws a weight's initial values on the device; false if they are divided, or not uniform.
  bool draw(const Param& param, const ParamPart& part, uint64_t seed);
  PartWriter writer(StateKind kind) {
    return [this, kind](const Param& param, const ParamPart& part, const HostTensor& value) {
      write(kind, param, part, value);
    };
  }

 private:
  // Elements of a flat buffer.
  struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
    Range operator&(const Range& other) const;
  };
  bool is_split(StateKind kind) const {
    return kind == StateKind::kWeight && dtype_ == DType::kBF16;
  }
  // True if ranks keep parts of the float32 values (of a split master: of its low halves).
  bool is_divided(StateKind kind) const;
  const FlatBuffer& buffer_of(const Param& param) const;
  // What shard `shard` keeps of a buffer; everything unless divided.
  Range kept(const FlatBuffer& buffer, bool divided, int shard) const;
  std::vector<float> read_range(StateKind kind, const Param& param, Range range) const;
  void read_piece(const std::string& region, const FlatBuffer& buffer, bool divided, Range range,
                  DType dtype, void* to) const;
  void write_piece(const std::string& region, const FlatBuffer& buffer, bool divided, Range range,
                   DType dtype, const void* from);

  const ParamSet& params_;
  std::shared_ptr<Memory> memory_;
  DType dtype_;
  Sharding sharding_;
};

}  // namespace wam::train
