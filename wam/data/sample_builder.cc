#include "wam/data/sample_builder.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"
#include "wam/data/prompt.h"

namespace wam::data {
namespace {

constexpr const char* kTaskColumn = "task_index";

// A numeric column of the episode; checks its rows.
const HostTensor& numeric_column(const EpisodeTable& table, const std::string& column,
                                 const std::string& where) {
  const auto found = table.numeric.find(column);
  if (found == table.numeric.end()) {
    throw DataError({.where = where,
                     .what = "episode has no numeric column '" + column + "'",
                     .remedy = "Run `wam validate` on the dataset."});
  }
  const Shape& shape = found->second.shape();
  WAM_CHECK(shape.ndim() == 2 && shape[0] == table.num_rows) << column << shape.to_string();
  return found->second;
}

void check_statistics_width(const std::vector<FoundSlice>& slices,
                            const std::map<std::string, KeyStats>& stats,
                            const std::string& modality, const std::string& source) {
  for (const FoundSlice& slice : slices) {
    const auto entry = stats.find(slice.key);
    if (entry == stats.end() || entry->second.width == slice.width()) continue;
    throw DataError({.where = source,
                     .what = "statistics of " + modality + " '" + slice.key +
                             "' are for another width than the dataset's",
                     .got = std::to_string(entry->second.width),
                     .expected = std::to_string(slice.width()),
                     .remedy = "Compute them anew with `wam stats`, or name the matching slice."});
  }
}

int64_t total_dims(const std::vector<FoundSlice>& slices) {
  int64_t total = 0;
  for (const FoundSlice& slice : slices) total += std::ssize(slice.dims);
  return total;
}

HostTensor latent_mask(const Window& window) {
  const auto num_frames = static_cast<int64_t>(window.frame_valid.size());
  HostTensor mask(DType::kF32, {1 + (num_frames - 1) / 4});
  const auto values = mask.as<float>();
  std::fill(values.begin(), values.end(), 1.0f);
  // The first frame is a latent frame alone, then every four.
  for (int64_t t = 0; t < num_frames; ++t) {
    if (window.frame_valid[static_cast<size_t>(t)] == 0)
      values[static_cast<size_t>((t + 3) / 4)] = 0;
  }
  return mask;
}

}  // namespace

SampleBuilder::SampleBuilder(std::shared_ptr<const Dataset> dataset, Embodiment embodiment,
                             const NormStats& stats, std::shared_ptr<const Tokenizer> tokenizer,
                             BuilderOptions options)
    : dataset_(std::move(dataset)),
      embodiment_(std::move(embodiment)),
      tokenizer_(std::move(tokenizer)),
      options_(options) {
  WAM_CHECK(dataset_ != nullptr && tokenizer_ != nullptr && options_.num_blocks > 0);
  validate(embodiment_);
  for (const SliceSpec& slice : embodiment_.state) {
    state_.push_back(find_slice(*dataset_, "state", slice));
  }
  for (const SliceSpec& slice : embodiment_.action) {
    action_.push_back(find_slice(*dataset_, "action", slice));
  }
  for (const std::string& view : embodiment_.views)
    cameras_.push_back(find_camera(*dataset_, view));
  for (const std::string& key : embodiment_.language_keys) {
    language_columns_.push_back(find_language_column(*dataset_, key));
  }
  check_statistics_width(state_, stats.state, "state", stats.source);
  check_statistics_width(action_, stats.action, "action", stats.source);
  codec_ =
      std::make_unique<RobotCodec>(embodiment_, stats, options_.state_dim, options_.action_dim);
}

std::string SampleBuilder::where(const Episode& episode) const {
  return dataset_->root().string() + ", episode " + std::to_string(episode.index);
}

std::vector<std::string> SampleBuilder::needed_columns() const {
  std::set<std::string> columns(language_columns_.begin(), language_columns_.end());
  for (const FoundSlice& slice : state_) columns.insert(slice.column);
  for (const FoundSlice& slice : action_) columns.insert(slice.column);
  const bool by_task = language_columns_.empty() && dataset_->find_feature(kTaskColumn) != nullptr;
  if (by_task) columns.insert(kTaskColumn);
  return {columns.begin(), columns.end()};
}

std::vector<int64_t> SampleBuilder::language_labels(const Episode& episode,
                                                    const EpisodeTable& table) const {
  const std::string column = language_columns_.empty() ? kTaskColumn : language_columns_[0];
  std::vector<int64_t> labels;
  if (const auto text = table.text.find(column); text != table.text.end()) {
    std::unordered_map<std::string, int64_t> ids;
    for (const std::string& value : text->second) {
      labels.push_back(ids.try_emplace(value, std::ssize(ids)).first->second);
    }
    return labels;
  }
  if (language_columns_.empty() && !table.numeric.contains(column)) return {};  // one for all rows
  const HostTensor& numbers = numeric_column(table, column, where(episode));
  const int64_t width = numbers.shape()[1];
  for (int64_t row = 0; row < table.num_rows; ++row) {
    const double value = numbers.as<double>()[static_cast<size_t>(row * width)];
    labels.push_back(std::isfinite(value) ? std::llround(value) : -1);
  }
  return labels;
}

std::string SampleBuilder::task_at(const Episode& episode, const EpisodeTable& table,
                                   int64_t row) const {
  if (table.numeric.contains(kTaskColumn)) return text_at(episode, table, kTaskColumn, row);
  if (episode.tasks.size() == 1) return episode.tasks[0];
  throw DataError(
      {.where = where(episode),
       .what = "no task_index column, and the episode's meta names several tasks or none",
       .got = std::to_string(episode.tasks.size()) + " tasks",
       .expected = "one task, or a column that tells them apart",
       .remedy = "Set language_keys to the column that holds the instruction."});
}

std::string SampleBuilder::text_at(const Episode& episode, const EpisodeTable& table,
                                   const std::string& column, int64_t row) const {
  const auto text = table.text.find(column);
  if (text != table.text.end()) return text->second.at(static_cast<size_t>(row));
  const HostTensor& numbers = numeric_column(table, column, where(episode));
  const double value = numbers.as<double>()[static_cast<size_t>(row * numbers.shape()[1])];
  const auto task =
      std::isfinite(value) ? dataset_->tasks().find(std::llround(value)) : dataset_->tasks().end();
  if (task != dataset_->tasks().end()) return task->second;
  throw DataError({.where = where(episode) + ", column " + column + ", row " + std::to_string(row),
                   .what = "not the number of a task",
                   .got = std::to_string(value),
                   .expected = "a task_index of the dataset's meta",
                   .remedy = "Correct the column, or add the task to meta/tasks.jsonl."});
}

std::string SampleBuilder::instruction(const Episode& episode, const EpisodeTable& table,
                                       int64_t row, const DrawKey& key) const {
  const std::string& fallback = embodiment_.default_instruction;
  if (options_.training && embodiment_.language_dropout > 0) {
    Random drop(key.seed, RandomUse::kPromptDrop, key.step, key.index);
    if (drop.uniform() < embodiment_.language_dropout) return fallback;
  }
  std::vector<std::string> texts;
  for (const std::string& column : language_columns_) {
    std::string text = text_at(episode, table, column, row);
    if (!is_blank_instruction(text)) texts.push_back(std::move(text));
  }
  if (language_columns_.empty()) {
    std::string text = task_at(episode, table, row);
    if (!is_blank_instruction(text)) texts.push_back(std::move(text));
  }
  Random pick(key.seed, RandomUse::kLanguage, key.step, key.index);
  if (!texts.empty()) return texts[options_.training ? pick.below(texts.size()) : 0];
  if (!fallback.empty()) return fallback;
  throw DataError(
      {.where = where(episode) + ", row " + std::to_string(row),
       .what = "instruction is empty",
       .expected = "text in " + (language_columns_.empty() ? std::string("the task")
                                                           : join(language_columns_, ", ")),
       .remedy = "Correct the dataset, or set default_instruction in the embodiment."});
}

std::vector<double> SampleBuilder::gather(const std::vector<FoundSlice>& slices,
                                          const Episode& episode, const EpisodeTable& table,
                                          std::span<const int64_t> rows) const {
  const int64_t width = total_dims(slices);
  std::vector<double> values(static_cast<size_t>(width) * rows.size());
  int64_t first = 0;
  for (const FoundSlice& slice : slices) {
    const HostTensor& column = numeric_column(table, slice.column, where(episode));
    const int64_t columns = column.shape()[1];
    if (columns < slice.end) {
      throw DataError({.where = where(episode) + ", column " + slice.column,
                       .what = "narrower than the slice '" + slice.key + "'",
                       .got = std::to_string(columns),
                       .expected = "at least " + std::to_string(slice.end),
                       .remedy = "Correct the slice, or the shape in meta/info.json."});
    }
    const auto numbers = column.as<double>();
    for (size_t i = 0; i < rows.size(); ++i) {
      WAM_CHECK(rows[i] >= 0 && rows[i] < table.num_rows);
      for (size_t d = 0; d < slice.dims.size(); ++d) {
        const int64_t dim = slice.begin + slice.dims[d];
        const double value = numbers[static_cast<size_t>(rows[i] * columns + dim)];
        if (!std::isfinite(value)) {
          throw DataError({.where = where(episode) + ", column " + slice.column + ", row " +
                                    std::to_string(rows[i]) + ", dim " + std::to_string(dim),
                           .what = "not a finite number",
                           .got = std::to_string(value),
                           .remedy = "Run `wam validate`; correct or leave out the episode."});
        }
        values[i * static_cast<size_t>(width) + static_cast<size_t>(first) + d] = value;
      }
    }
    first += std::ssize(slice.dims);
  }
  return values;
}

std::vector<double> SampleBuilder::raw_states(const Episode& episode, const EpisodeTable& table,
                                              std::span<const int64_t> rows) const {
  return gather(state_, episode, table, rows);
}

std::vector<double> SampleBuilder::raw_actions(const Episode& episode, const EpisodeTable& table,
                                               std::span<const int64_t> rows) const {
  return gather(action_, episode, table, rows);
}

HostTensor SampleBuilder::read_pictures(const Episode& episode, FrameReader& reader,
                                        const Window& window, const DrawKey& key) const {
  std::vector<PictureSize> sizes;
  for (const std::string& camera : cameras_) {
    const Feature& feature = *dataset_->find_feature(camera);
    sizes.push_back({feature.picture_height(), feature.picture_width()});
  }
  try {
    check_equal_sizes(embodiment_, sizes);
  } catch (Error& error) {
    error.add_context(where(episode));
    throw;
  }
  ViewTiler tiler(embodiment_, std::ssize(window.frame_rows), sizes[0].height, sizes[0].width,
                  options_.training, key);
  for (size_t v = 0; v < cameras_.size(); ++v) {
    const auto put = [&](size_t place, std::span<const uint8_t> frame) {
      tiler.put(static_cast<int64_t>(v), static_cast<int64_t>(place), frame);
    };
    reader.read_each(episode, cameras_[v], window.frame_rows, put);
  }
  return tiler.take();
}

void SampleBuilder::fill_numbers(const Episode& episode, const EpisodeTable& table,
                                 const Window& window, Sample& sample) const {
  const int64_t k = options_.num_blocks, horizon = codec_->action_horizon();
  const int64_t state_dim = options_.state_dim, action_dim = options_.action_dim;
  WAM_CHECK(std::ssize(window.state_rows) == k && std::ssize(window.action_rows) == k * horizon);
  sample.state = HostTensor(DType::kF32, {k, state_dim});
  sample.action = HostTensor(DType::kF32, {k * horizon, action_dim});
  sample.action_mask = HostTensor::zeros(DType::kF32, {k * horizon, action_dim});
  const std::vector<double> states = raw_states(episode, table, window.state_rows);
  const std::vector<double> actions = raw_actions(episode, table, window.action_rows);
  const auto state_width = static_cast<size_t>(codec_->state_width());
  const auto block = static_cast<size_t>(horizon * codec_->action_width());
  for (size_t b = 0; b < static_cast<size_t>(k); ++b) {
    const auto state = std::span(states).subspan(b * state_width, state_width);
    const auto out_state = static_cast<size_t>(state_dim),
               out = static_cast<size_t>(horizon * action_dim);
    codec_->encode_state(state, sample.state.as<float>().subspan(b * out_state, out_state));
    codec_->encode_actions(std::span(actions).subspan(b * block, block), state,
                           sample.action.as<float>().subspan(b * out, out));
  }
  for (size_t i = 0; i < window.action_rows.size(); ++i) {
    const auto row = sample.action_mask.as<float>().subspan(
        i * static_cast<size_t>(action_dim), static_cast<size_t>(codec_->action_width()));
    std::fill(row.begin(), row.end(), window.action_valid[i] != 0 ? 1.0f : 0.0f);
  }
}

Sample SampleBuilder::build(const Episode& episode, const EpisodeTable& table, FrameReader& reader,
                            const Window& window, const DrawKey& key) const {
  if (table.num_rows != episode.length) {
    throw DataError({.where = where(episode),
                     .what = "table and meta disagree on the episode's length",
                     .got = std::to_string(table.num_rows) + " rows",
                     .expected = std::to_string(episode.length),
                     .remedy = "Run `wam validate` on the dataset."});
  }
  Sample sample;
  sample.id = window.id;
  sample.has_real_action = embodiment_.has_real_action ? 1.0f : 0.0f;
  // Cheap checks first: a wrong number or text should not wait for the pictures.
  fill_numbers(episode, table, window, sample);
  const std::string text = instruction(episode, table, window.id.first_anchor, key);
  try {
    sample.prompt = make_prompt(embodiment_.prompt_template, text);
  } catch (Error& error) {
    error.add_context(where(episode));
    throw;
  }
  sample.token_ids = tokenizer_->encode(sample.prompt);
  sample.video_mask = latent_mask(window);
  sample.video = read_pictures(episode, reader, window, key);
  return sample;
}

}  // namespace wam::data
