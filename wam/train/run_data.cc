#include "wam/train/run_data.h"

#include <algorithm>

#include "wam/base/error.h"
#include "wam/base/log.h"
#include "wam/data/prompt.h"
#include "wam/data/screen.h"
#include "wam/data/slice_lookup.h"

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

// Instructions known from the task list alone: annotation columns of text would need a full read.
int64_t measure_prompts(const data::Dataset& dataset, const data::Embodiment& embodiment,
                        const data::Tokenizer& tokenizer) {
  for (const std::string& key : embodiment.language_keys) {
    const data::Feature* feature = dataset.find_feature(data::find_language_column(dataset, key));
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

std::map<std::string, data::VideoInfo> video_infos(const RunSource& source) {
  std::map<std::string, data::VideoInfo> video;
  for (const std::string& view : source.embodiment.views) {
    const data::Feature* camera =
        source.dataset->find_feature(data::find_camera(*source.dataset, view));
    video[view] = {camera->picture_width(), camera->picture_height(), source.dataset->fps()};
  }
  return video;
}

data::SelectionOptions selection_options(const SourceSection& section, uint64_t seed,
                                         const std::string& where) {
  const auto ranges = [&](const std::vector<std::string>& texts, const char* key) {
    return data::IndexRanges::parse(texts, where + "." + key);
  };
  return {.exclude_episodes = ranges(section.exclude_episodes, "exclude_episodes"),
          .tasks = section.tasks,
          .exclude_tasks = section.exclude_tasks,
          .split = {.validation_episodes = ranges(section.validation_episodes, "validation_episodes"),
                    .validation_last = section.validation_last,
                    .validation_fraction = section.validation_fraction,
                    .seed = seed},
          .episodes = ranges(section.episodes, "episodes"),
          .drop_frames = section.drop_frames};
}

// Differences of quaternions or matrices are no rotations.
void warn_relative_rotations(const data::Dataset& dataset, const data::Embodiment& embodiment) {
  for (const data::ModalitySlice& entry : dataset.modality().action) {
    const bool is_relative = std::ranges::count(embodiment.relative_action_keys, entry.key) > 0;
    if (!is_relative || entry.rotation_type.empty()) continue;
    log_warn(dataset.root().string() + ": action " + entry.key + " is a rotation (" +
             entry.rotation_type + ") and is made relative number by number");
  }
}

// What is wrong with the data is said before hours are spent on it. Returns the section without the
// episodes that are left out for it.
SourceSection screened(const SourceSection& section, const data::Dataset& dataset, const std::string& where) {
  const data::FaultPolicy policy = data::parse_fault_policy(section.faults, where + ".faults");
  const data::Screening screening = data::screen_dataset(dataset, policy);
  for (const std::string& line : screening.lines) log_warn(section.path + ": " + line);
  SourceSection rest = section;
  std::string names;
  for (const int64_t index : screening.excluded) {
    rest.exclude_episodes.push_back(std::to_string(index));
    names += (names.empty() ? "" : ", ") + rest.exclude_episodes.back();
  }
  if (!names.empty()) {
    log_warn(section.path + ": episodes left out for their faults, as " + where + ".faults asks: " + names);
  }
  return rest;
}

RunSource open_source(const SourceSection& asked, const TrainConfig& config, const std::string& where) {
  RunSource source;
  source.dataset = data::open_dataset(asked.path);
  const SourceSection section = screened(asked, *source.dataset, where);
  source.name = section.shown_name();
  source.weight = section.weight;
  source.embodiment = section.embodiment;
  source.stats = section.statistics.empty()
                     ? data::dataset_stats(*source.dataset, section.embodiment)
                     : data::load_metadata_stats(section.statistics, section.statistics_key.empty()
                                                                         ? section.embodiment.tag
                                                                         : section.statistics_key);
  source.selection = data::select_episodes(*source.dataset, selection_options(section, config.seed, where), where);
  warn_relative_rotations(*source.dataset, source.embodiment);
  const std::string left_out = source.selection.text();
  if (!left_out.empty()) log_info(section.path + ": " + left_out);
  return source;
}

void make_builders(RunSource& source, const std::shared_ptr<const data::Tokenizer>& tokenizer,
                   const DitConfig& model) {
  data::BuilderOptions options{.num_blocks = model.num_blocks,
                               .state_dim = model.state_dim,
                               .action_dim = model.action_dim,
                               .training = true};
  source.train_builder = std::make_shared<const data::SampleBuilder>(
      source.dataset, source.embodiment, source.stats, tokenizer, options);
  options.training = false;
  source.validation_builder = std::make_shared<const data::SampleBuilder>(
      source.dataset, source.embodiment, source.stats, tokenizer, options);
}

// Sources of one robot have a block each where their statistics differ.
void name_statistics(std::vector<RunSource>& sources) {
  for (size_t i = 0; i < sources.size(); ++i) {
    RunSource& source = sources[i];
    source.statistics_key = source.embodiment.tag;
    for (size_t j = 0; j < i; ++j) {
      if (sources[j].embodiment.tag != source.embodiment.tag) continue;
      const auto text = [](const RunSource& one) { return data::metadata_json(one.embodiment, one.stats, {}); };
      const bool is_same = text(source) == text(sources[j]);
      source.statistics_key = is_same ? sources[j].statistics_key : source.embodiment.tag + "/" + source.name;
      if (is_same) break;
    }
  }
}

std::string metadata_of(const std::vector<RunSource>& sources) {
  std::vector<data::MetadataBlock> blocks;
  for (const RunSource& source : sources) {
    const bool is_new = std::ranges::none_of(
        blocks, [&](const data::MetadataBlock& b) { return b.tag == source.statistics_key; });
    if (!is_new) continue;
    blocks.push_back({source.statistics_key, &source.embodiment, &source.stats, video_infos(source),
                      &source.dataset->modality()});
  }
  return data::metadata_json(blocks);
}

// With several sources each has a weight; a single one is drawn from row by row as it always was.
double weight_of(const TrainConfig& config, const RunSource& source, const std::vector<int64_t>& positions,
                 size_t num_sources) {
  if (num_sources < 2) return 0;
  if (config.dataset.mixture_weights == "samples") return source.weight;
  double rows = 0;
  for (const int64_t position : positions) {
    rows += static_cast<double>(source.dataset->episodes()[static_cast<size_t>(position)].length);
  }
  return source.weight * rows;
}

std::shared_ptr<const data::DatasetSource> make_stream(const TrainConfig& config, const RunData& run,
                                                       bool training, int64_t batch) {
  std::vector<const RunSource*> used;
  for (const RunSource& source : run.sources) {
    if (training || !source.selection.split.validation.empty()) used.push_back(&source);
  }
  std::vector<data::SourcePart> parts;
  for (const RunSource* source : used) {
    const data::EpisodeSplit& split = source->selection.split;
    const std::vector<int64_t>& positions = training ? split.train : split.validation;
    parts.push_back({training ? source->train_builder : source->validation_builder, positions,
                     weight_of(config, *source, positions, used.size()),
                     run.sources.size() > 1 ? source->name : "", source->selection.dropped});
  }
  return std::make_shared<const data::DatasetSource>(
      std::move(parts),
      data::SourceOptions{.mode = data::parse_sampling_mode(config.dataset.sampling_mode),
                          .seed = training ? config.seed : kValidationSeed,
                          .global_batch_size = batch});
}

}  // namespace

std::vector<std::string> RunData::source_names() const {
  std::vector<std::string> names;
  for (const RunSource& source : sources) names.push_back(source.name);
  return names;
}

RunData open_run_data(const TrainConfig& config, const DitConfig& model) {
  const std::vector<SourceSection> sections = config.dataset.sources();
  if (sections.front().path.empty()) {
    throw ConfigError({.where = "dataset.path", .what = "no dataset is named",
                       .remedy = "Add dataset.path=FOLDER of a LeRobot dataset."});
  }
  RunData run;
  run.tokenizer = open_tokenizer(config, model);
  for (size_t i = 0; i < sections.size(); ++i) {
    const std::string where = sections.size() == 1 && config.dataset.mixture.empty()
                                  ? "dataset"
                                  : "dataset.mixture[" + std::to_string(i) + "]";
    run.sources.push_back(open_source(sections[i], config, where));
    make_builders(run.sources.back(), run.tokenizer, model);
  }
  name_statistics(run.sources);
  run.train = make_stream(config, run, true, config.global_batch_size);
  log_info("data: " + run.train->report().text());
  bool prompts_known = true;
  for (size_t i = 0; i < run.sources.size(); ++i) {
    const RunSource& source = run.sources[i];
    if (!source.selection.split.validation.empty()) run.validation_sources.push_back(static_cast<int64_t>(i));
    const int64_t longest = measure_prompts(*source.dataset, source.embodiment, *run.tokenizer);
    prompts_known = prompts_known && longest > 0;
    run.longest_prompt = std::max(run.longest_prompt, longest);
  }
  if (!prompts_known) run.longest_prompt = 0;
  if (!run.validation_sources.empty()) {
    // Whole micro-batches are loaded.
    const int64_t micro = config.micro_batch_size;
    run.validation = make_stream(config, run, false, (config.validation_samples + micro - 1) / micro * micro);
    log_info("held out: " + run.validation->report().text());
  }
  run.metadata_json = metadata_of(run.sources);
  return run;
}

int64_t prompt_rows(const TrainConfig& config, const DitConfig& model, const RunData& data) {
  if (config.text_encoder.prompt_tokens != 0) return config.text_encoder.prompt_tokens;
  if (data.longest_prompt == 0) return model.text_len;
  return std::min(model.text_len, data.longest_prompt + 1);
}

}  // namespace wam::train
