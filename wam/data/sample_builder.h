// From a window's rows to a finished sample: pictures, states, actions, prompt and token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/embodiment.h"
#include "wam/data/norm_stats.h"
#include "wam/data/robot_codec.h"
#include "wam/data/slice_lookup.h"
#include "wam/data/tokenizer.h"
#include "wam/data/types.h"
#include "wam/data/view_transform.h"

namespace wam::data {

struct BuilderOptions {
  int64_t num_blocks = 0;  // K
  int64_t state_dim = 64;  // padded widths
  int64_t action_dim = 32;
  bool training = true;  // false: centre crop, no jitter, first language, none dropped
};

// Of one dataset and embodiment. Immutable, usable by many threads, each with its own FrameReader.
// Errors name dataset, episode, column and row.
class SampleBuilder {
 public:
  // Resolves every key once. Throws DataError (keys or statistics the dataset lacks) or ConfigError
  // (slices that do not fit the model).
  SampleBuilder(std::shared_ptr<const Dataset> dataset, Embodiment embodiment,
                const NormStats& stats, std::shared_ptr<const Tokenizer> tokenizer,
                BuilderOptions options);

  const Dataset& dataset() const { return *dataset_; }
  const Embodiment& embodiment() const { return embodiment_; }
  const RobotCodec& codec() const { return *codec_; }
  const BuilderOptions& options() const { return options_; }

  // Columns of the episode's table that a sample needs.
  std::vector<std::string> needed_columns() const;

  // One id per row, equal where the language is; what windows are bounded by.
  std::vector<int64_t> language_labels(const Episode& episode, const EpisodeTable& table) const;

  // The key's numbers come from its random streams alone.
  Sample build(const Episode& episode, const EpisodeTable& table, FrameReader& reader,
               const Window& window, const DrawKey& key) const;

  // Raw numbers of the embodiment's dims at `rows`: [n, state_width] and [n, action_width]. Throws
  // DataError for numbers that are not finite.
  std::vector<double> raw_states(const Episode& episode, const EpisodeTable& table,
                                 std::span<const int64_t> rows) const;
  std::vector<double> raw_actions(const Episode& episode, const EpisodeTable& table,
                                  std::span<const int64_t> rows) const;
  // The instruction of a row as the dataset has it; see Embodiment for which is taken.
  std::string instruction(const Episode& episode, const EpisodeTable& table, int64_t row,
                          const DrawKey& key) const;

 private:
  HostTensor read_pictures(const Episode& episode, FrameReader& reader, const Window& window,
                           const DrawKey& key) const;
  void fill_numbers(const Episode& episode, const EpisodeTable& table, const Window& window,
                    Sample& sample) const;
  std::string where(const Episode& episode) const;
  std::vector<double> gather(const std::vector<FoundSlice>& slices, const Episode& episode,
                             const EpisodeTable& table, std::span<const int64_t> rows) const;
  std::string text_at(const Episode& episode, const EpisodeTable& table, const std::string& column,
                      int64_t row) const;
  std::string task_at(const Episode& episode, const EpisodeTable& table, int64_t row) const;

  std::shared_ptr<const Dataset> dataset_;
  Embodiment embodiment_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  BuilderOptions options_;
  std::vector<FoundSlice> state_, action_;
  std::vector<std::string> cameras_;           // feature of each view
  std::vector<std::string> language_columns_;  // of each language key
  std::unique_ptr<const RobotCodec> codec_;
};

}  // namespace wam::data
