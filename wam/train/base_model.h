// Where a run's weights come from: any public checkpoint that its configuration names.
#pragma once

#include <string>

#include "wam/formats/model_archive.h"
#include "wam/models/weights.h"
#include "wam/train/config.h"

namespace wam::train {

// The config with what `model.base` holds in place of empty keys: weights of the transformer and of
// the frozen encoders, and the tokenizer. Unchanged if it is empty. Throws DataError if the base
// lacks a part that no other key names.
TrainConfig with_base(TrainConfig config);

// Reads the transformer out of `source`, a checkpoint of any kind; a LoRA adapter is merged into
// `base`, or into the base it names itself. Only a Wan base may lack what base_checkpoint_gaps()
// lists; that is initialised from the config's seed.
LoadReport load_transformer(const TrainConfig& config, const std::string& source,
                            const ParamSet& params, const PartWriter& write);

// The names of an encoder's checkpoint that its graph does not use: the VAE's decoder, CLIP's last
// block, head and text tower.
LoadOptions encoder_load_options(const TrainConfig& config, ModelPart part);

}  // namespace wam::train
