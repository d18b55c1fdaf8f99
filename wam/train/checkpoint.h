// What a checkpoint folder holds: model.safetensors (weights under their public names),
// optimizer.safetensors (exp_avg.<name>, exp_avg_sq.<name>), config.yaml (the resolved run),
// config.json (the model), metadata.json (statistics, public layout), trainer_state.json (step, and
// the hash of every other file, checked on load).
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "wam/base/error.h"
#include "wam/train/config.h"
#include "wam/train/ranks.h"
#include "wam/train/state_access.h"

namespace wam::train {

// A state that must not reach a checkpoint: no disk's fault, and no second try helps.
struct NotFiniteError : DataError {
  using DataError::DataError;
};

struct TrainerState {
  int64_t step = 0;           // optimizer steps done
  double last_loss = 0;
  std::string version;        // of the binary that wrote it
  std::string config_hash;    // of what must not change between save and resume
};

// Writes everything into `folder`. `metadata_json` is the text of metadata.json; `extra` further
// small files by name (frozen statistics and the like).
void write_checkpoint(const std::filesystem::path& folder, const StateAccess& states,
                      const TrainConfig& config, const TrainerState& state,
                      const std::map<std::string, std::string>& extra);

// The same by all ranks together, each writing its share of the tensors: the first rank's call makes
// the rest. Files are then model-0000i-of-0000n.safetensors with model.safetensors.index.json, and so
// for the optimizer: the public layout for large models, readable by any number of ranks.
void write_checkpoint_together(const std::filesystem::path& folder, const StateAccess& states,
                               const TrainConfig& config, const TrainerState& state,
                               const std::map<std::string, std::string>& extra, const Ranks& ranks);

// Weights of a checkpoint folder, written by one rank or by many; anything else as it is.
std::filesystem::path weights_file(const std::filesystem::path& checkpoint);

// Checks every hash, then reads weights and moments. Throws DataError naming the file that is cut
// short, changed or missing.
TrainerState read_checkpoint(const std::filesystem::path& folder, StateAccess& states);
// The state alone, without touching the large files.
TrainerState read_trainer_state(const std::filesystem::path& folder);

// Bytes of a checkpoint of these parameters, a little more than it will have.
int64_t checkpoint_bytes(const ParamSet& params);

// Hash of the keys that define the mathematics of a run: a resume under others is refused.
std::string resume_hash(const TrainConfig& config);

// Model sizes as JSON, the checkpoint's config.json.
std::string model_json(const TrainConfig& config);

}  // namespace wam::train
