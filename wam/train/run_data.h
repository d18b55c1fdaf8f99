// The data side of a run: dataset, split, statistics, tokenizer, and the sources samples come from.
#pragma once

#include <memory>

#include "wam/data/dataset_source.h"
#include "wam/data/norm_stats.h"
#include "wam/data/split.h"
#include "wam/data/tokenizer.h"
#include "wam/train/config.h"

namespace wam::train {

struct RunData {
  std::shared_ptr<const data::Dataset> dataset;
  data::NormStats stats;
  std::shared_ptr<const data::Tokenizer> tokenizer;
  data::EpisodeSplit split;
  std::shared_ptr<const data::SampleBuilder> train_builder, validation_builder;
  std::shared_ptr<const data::DatasetSource> train;
  std::shared_ptr<const data::DatasetSource> validation;  // null if no episode is held out
  int64_t longest_prompt = 0;  // tokens with end-of-sequence; 0 if the prompts are not known ahead
  std::string metadata_json;
};

// Opens everything the config names. Throws DataError or ConfigError.
RunData open_run_data(const TrainConfig& config, const DitConfig& model);

// Rows of the text condition: the config's, else one more than the longest prompt, else text_len.
int64_t prompt_rows(const TrainConfig& config, const DitConfig& model, const RunData& data);

}  // namespace wam::train
