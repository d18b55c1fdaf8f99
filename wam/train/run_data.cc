#include "wam/train/run_data.h"

#include <algorithm>

#include "wam/base/error.h"
#include "wam/base/log.h"
#include "wam/data/prompt.h"

namespace wam::train {
namespace {

// Validation draws must not follow the training seed: the same held-out windows for every run that
// differs in its seed alone would be wrong, the same for every step of one run is right.
constexpr uint64_t kValidationSeed = 0x76616c6964ULL;

std::shared_ptr<const data::Tokenizer> open_tokenizer(const TrainConfig& config, const DitConfig& model) {
  const std::string& name = config.text_encoder.tokenizer;
  if (name.empty()) {
    throw ConfigError({.where = "text_encoder.tokenizer",
                       .what = "no tokenizer is named",
                       .expected = "a SentencePiece model file, or 'bytes'",
                       .remedy = "Point it at the UMT5 spiece.model that belongs to the text encoder."});
  }
  data::TokenizerOptions options{.max_tokens = model.text_len};
  if (name == "bytes") {
    options.kind = "bytes";
  } else {
    options.path = name;
  }
  return data::make_tokenizer(options);
}

std::string metadata_of(const data::Dataset& dataset, const data::Embodiment& embodiment,
                        const data::NormStats& stats) {
  std::map<std::string, data::VideoInfo> video;
  for (const std::string& view : embodiment.views) {
    const auto entry = dataset.modality().video.find(view);
    const data::Feature* feature =
        dataset.find_feature(entry == dataset.modality().video.end() ? view : entry->second);
    data::VideoInfo info{.fps = dataset.fps()};
    if (feature != nullptr && feature->shape.size() == 3) {
      info.height = feature->shape[0];
      info.width = feature->shape[1];
    }
    video[view] = info;
  }
  return data::metadata_json(embodiment, stats, video);
}

// Instructions known from the task list alone: annotation columns of text would need a full read.
int64_t measure_prompts(const data::Dataset& dataset, const data::Embodiment& embodiment,
                        const data::Tokenizer& tokenizer) {
  for (const std::string& key : embodiment.language_keys) {
    const auto column = dataset.modality().annotation.find(key);
    const data::Feature* feature =
        dataset.find_feature(column == dataset.modality().annotation.end() ? key : column->second);
    if (feature == nullptr || feature->dtype == "string") return 0;
  }
  std::vector<std::string> texts = {embodiment.default_instruction};
  for (const auto& [index, text] : dataset.tasks()) texts.push_back(text);
  size_t longest = 0;
  for (const std::string& text : texts) {
    const std::string prompt = data::make_prompt(embodiment.prompt_template, text);
    longest = std::max(longest, tokenizer.encode(prompt).size());
  }
  return static_cast<int64_t>(longest);
}

std::vector<int64_t> chosen_positions(const data::Dataset& dataset, const std::vector<int64_t>& positions,
                                      const std::vector<int64_t>& wanted) {
  if (wanted.empty()) return positions;
  std::vector<int64_t> chosen;
  for (const int64_t position : positions) {
    const int64_t index = dataset.episodes()[static_cast<size_t>(position)].index;
    if (std::ranges::count(wanted, index) != 0) chosen.push_back(position);
  }
  return chosen;
}

}  // namespace

RunData open_run_data(const TrainConfig& config, const DitConfig& model) {
  const DatasetSection& section = config.dataset;
  if (section.path.empty()) {
    throw ConfigError({.where = "dataset.path", .what = "no dataset is named",
                       .remedy = "Add dataset.path=FOLDER of a LeRobot dataset."});
  }
  RunData run;
  run.dataset = data::open_dataset(section.path);
  run.tokenizer = open_tokenizer(config, model);
  run.stats = section.statistics.empty()
                  ? data::dataset_stats(*run.dataset, section.embodiment)
                  : data::load_metadata_stats(section.statistics, section.embodiment.tag);
  run.split = data::split_episodes(run.dataset->episodes(),
                                   {.validation_episodes = section.validation_episodes,
                                    .validation_last = section.validation_last,
                                    .validation_fraction = section.validation_fraction,
                                    .seed = config.seed});
  data::BuilderOptions builder{.num_blocks = model.num_blocks,
                               .state_dim = model.state_dim,
                               .action_dim = model.action_dim,
                               .training = true};
  run.train_builder = std::make_shared<const data::SampleBuilder>(run.dataset, section.embodiment,
                                                                  run.stats, run.tokenizer, builder);
  builder.training = false;
  run.validation_builder = std::make_shared<const data::SampleBuilder>(
      run.dataset, section.embodiment, run.stats, run.tokenizer, builder);
  const auto source = [&](const auto& build, std::vector<int64_t> positions, uint64_t seed, int64_t batch) {
    return std::make_shared<const data::DatasetSource>(
        std::vector<data::SourcePart>{{build, std::move(positions)}},
        data::SourceOptions{.mode = data::parse_sampling_mode(section.sampling_mode),
                            .seed = seed,
                            .global_batch_size = batch});
  };
  run.train = source(run.train_builder, chosen_positions(*run.dataset, run.split.train, section.episodes),
                     config.seed, config.global_batch_size);
  log_info("data: " + run.train->report().text());
  if (!run.split.validation.empty()) {
    run.validation = source(run.validation_builder, run.split.validation, kValidationSeed,
                            config.validation_samples);
    log_info("held out: " + run.validation->report().text());
  }
  run.longest_prompt = measure_prompts(*run.dataset, section.embodiment, *run.tokenizer);
  run.metadata_json = metadata_of(*run.dataset, section.embodiment, run.stats);
  return run;
}

int64_t prompt_rows(const TrainConfig& config, const DitConfig& model, const RunData& data) {
  if (config.text_encoder.prompt_tokens != 0) return config.text_encoder.prompt_tokens;
  if (data.longest_prompt == 0) return model.text_len;
  return std::min(model.text_len, data.longest_prompt + 1);
}

}  // namespace wam::train
