// The data side of a run: datasets, splits, statistics, tokenizer, and the stream of samples.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wam/data/dataset_source.h"
#include "wam/data/norm_stats.h"
#include "wam/data/selection.h"
#include "wam/data/tokenizer.h"
#include "wam/train/config.h"

namespace wam::train {

// One dataset of the run.
struct RunSource {
  std::string name;
  double weight = 1;
  data::Embodiment embodiment;
  std::string statistics_key;  // of its block in metadata.json
  std::shared_ptr<const data::Dataset> dataset;
  data::NormStats stats;
  data::Selection selection;
  std::shared_ptr<const data::SampleBuilder> train_builder, validation_builder;
};

struct RunData {
  std::vector<RunSource> sources;  // in the order of the config; samples' ids count in it
  std::shared_ptr<const data::Tokenizer> tokenizer;
  std::shared_ptr<const data::DatasetSource> train;
  std::shared_ptr<const data::DatasetSource> validation;  // null if no episode is held out
  std::vector<int64_t> validation_sources;  // source of each part of `validation`
  int64_t longest_prompt = 0;  // tokens with end-of-sequence; 0 if the prompts are not known ahead
  std::string metadata_json;

  std::vector<std::string> source_names() const;
};

// Opens everything the config names. Throws DataError or ConfigError.
RunData open_run_data(const TrainConfig& config, const DitConfig& model);

// Rows of the text condition: the config's, else one more than the longest prompt, else text_len.
int64_t prompt_rows(const TrainConfig& config, const DitConfig& model, const RunData& data);

}  // namespace wam::train
