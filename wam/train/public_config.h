// Configurations in the spelling of the public code: config.json out, YAML files in.
#pragma once

#include <string>
#include <vector>

#include "wam/train/config.h"

namespace wam::train {

struct PublicLora {
  int64_t rank = 0;  // 0: no factors in the checkpoint
  double alpha = 0;
};

// config.json as DreamZero's VLAConfig reads it: sizes nested in action_head_cfg.
std::string public_model_json(const TrainConfig& config, const PublicLora& lora = {});

struct ImportedConfig {
  std::string yaml;                    // ours; reads back through parse_config()
  std::vector<std::string> not_taken;  // "key: value (why)" of what has no place here
};

// Turns a YAML of RLinf (examples/sft/config) or DreamZero (conf.yaml, command line keys in a file)
// into ours. Throws ConfigError if it is neither.
ImportedConfig import_config(const std::string& text, const std::string& where);

}  // namespace wam::train
