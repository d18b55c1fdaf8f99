// Between a robot's own numbers and the model's: selects the embodiment's dims, makes actions
// relative, normalises, pads; and back. Immutable, usable by many threads. The same object serves
// training, evaluation and serving.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wam/data/embodiment.h"
#include "wam/data/norm_stats.h"
#include "wam/data/normalize.h"
#include "wam/data/relative_action.h"

namespace wam::data {

class RobotCodec {
 public:
  // Throws ConfigError if the slices are wider than state_dim or action_dim, DataError if
  // statistics lack a key (naming all that are missing) or have the wrong length.
  RobotCodec(const Embodiment& embodiment, const NormStats& stats, int64_t state_dim,
             int64_t action_dim);

  // Dims used, in the order of the embodiment's slices; "raw" vectors below have these widths.
  int64_t state_width() const { return std::ssize(state_names_); }
  int64_t action_width() const { return std::ssize(action_names_); }
  int64_t state_dim() const { return state_dim_; }
  int64_t action_dim() const { return action_dim_; }
  int64_t action_horizon() const { return action_horizon_; }
  // "joint_position[3]", for reports.
  const std::vector<std::string>& state_names() const { return state_names_; }
  const std::vector<std::string>& action_names() const { return action_names_; }

  // raw [state_width] -> [state_dim], zero padded.
  void encode_state(std::span<const double> raw, std::span<float> out) const;
  // Raw rows [A, action_width] of one block and the raw state at its first row -> [A, action_dim],
  // zero padded.
  void encode_actions(std::span<const double> raw, std::span<const double> state,
                      std::span<float> out) const;
  // The inverse: [A, action_dim] -> raw [A, action_width].
  void decode_actions(std::span<const float> encoded, std::span<const double> state,
                      std::span<double> raw) const;

 private:
  const DimNorm& action_norm(int64_t row, int64_t dim) const;

  int64_t state_dim_, action_dim_, action_horizon_;
  std::vector<std::string> state_names_, action_names_;
  std::vector<DimNorm> state_norms_;                // [state_width]
  std::vector<std::vector<DimNorm>> action_norms_;  // per dim: one, or one per row of the block
  RelativeDims relative_;                           // [action_width]
};

}  // namespace wam::data
