// wam data show DATASET: one HTML page of what a run would see of a dataset: pictures after crop,
// jitter and tiling, states and actions as plots, prompts with their number of tokens.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/cli/data_commands.h"
#include "wam/cli/usage.h"
#include "wam/data/image_codec.h"
#include "wam/train/html_report.h"
#include "wam/train/run_data.h"
#include "wam/train/session.h"

namespace wam::cli {
namespace {

// A sheet of small pictures: this many a row, none wider than that.
constexpr int64_t kSheetColumns = 8;
constexpr int64_t kSheetWidth = 200;
constexpr size_t kSeriesAChart = 8;
constexpr int64_t kRawPictures = 16;

struct ShowArgs {
  std::filesystem::path dataset, out = "dataset.html";
  std::string config;
  std::vector<std::string> overrides;
  int64_t samples = 3, first_sample = 0, episode = -1;
};

std::string png_of(std::span<const uint8_t> rgb, int64_t height, int64_t width) {
  const std::vector<std::byte> bytes = data::encode_png(rgb, height, width);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Means of squares of `factor` pixels.
std::vector<uint8_t> reduced(std::span<const uint8_t> rgb, int64_t height, int64_t width,
                             int64_t factor) {
  const int64_t h = height / factor, w = width / factor;
  std::vector<uint8_t> small(static_cast<size_t>(h * w * 3));
  for (int64_t y = 0; y < h; ++y) {
    for (int64_t x = 0; x < w; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        int64_t sum = 0;
        for (int64_t i = 0; i < factor * factor; ++i) {
          const int64_t row = y * factor + i / factor, column = x * factor + i % factor;
          sum += rgb[static_cast<size_t>((row * width + column) * 3 + c)];
        }
        small[static_cast<size_t>((y * w + x) * 3 + c)] =
            static_cast<uint8_t>(sum / (factor * factor));
      }
    }
  }
  return small;
}

// All of [T, H, W, 3] side by side, reduced.
std::string sheet_png(const HostTensor& pictures) {
  const int64_t count = pictures.shape()[0], height = pictures.shape()[1],
                width = pictures.shape()[2];
  const int64_t factor = std::max<int64_t>(
      1, std::min((width + kSheetWidth - 1) / kSheetWidth, std::min(height, width)));
  const int64_t h = height / factor, w = width / factor;
  const int64_t columns = std::min(count, kSheetColumns), rows = (count + columns - 1) / columns;
  const int64_t sheet_height = rows * (h + 2), sheet_width = columns * (w + 2);
  std::vector<uint8_t> sheet(static_cast<size_t>(sheet_height * sheet_width * 3), 128);
  const auto size = static_cast<size_t>(height * width * 3);
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<uint8_t> small = reduced(
        pictures.as<uint8_t>().subspan(static_cast<size_t>(i) * size, size), height, width, factor);
    const int64_t top = i / columns * (h + 2), left = i % columns * (w + 2);
    for (int64_t y = 0; y < h; ++y) {
      std::copy_n(small.begin() + y * w * 3, w * 3,
                  sheet.begin() + ((top + y) * sheet_width + left) * 3);
    }
  }
  return png_of(sheet, sheet_height, sheet_width);
}

std::string first_png(const HostTensor& pictures) {
  const int64_t height = pictures.shape()[1], width = pictures.shape()[2];
  return png_of(pictures.as<uint8_t>().first(static_cast<size_t>(height * width * 3)), height,
                width);
}

// Charts of at most kSeriesAChart curves each.
void add_charts(train::HtmlReport& page, const std::string& title, const std::string& x_label,
                const std::vector<train::ChartSeries>& series) {
  for (size_t first = 0; first < series.size(); first += kSeriesAChart) {
    const size_t end = std::min(series.size(), first + kSeriesAChart);
    train::LineChart chart{.title = title, .x_label = x_label, .y_label = ""};
    if (series.size() > kSeriesAChart) chart.title += fmt::format(", {} to {}", first, end - 1);
    chart.series.assign(series.begin() + static_cast<int64_t>(first),
                        series.begin() + static_cast<int64_t>(end));
    page.add_line_chart(chart);
  }
}

// Columns 0..names.size() of [rows, width]; where the mask is 0 the curve has a gap.
std::vector<train::ChartSeries> curves(const HostTensor& values,
                                       const std::vector<std::string>& names,
                                       const HostTensor* mask) {
  std::vector<train::ChartSeries> series;
  const int64_t rows = values.shape()[0], width = values.shape()[1];
  for (size_t d = 0; d < names.size(); ++d) {
    train::ChartSeries one{.name = names[d], .xs = {}, .ys = {}};
    for (int64_t row = 0; row < rows; ++row) {
      const auto i = static_cast<size_t>(row * width) + d;
      const bool is_there = mask == nullptr || mask->as<float>()[i] != 0;
      one.xs.push_back(static_cast<double>(row));
      one.ys.push_back(is_there ? static_cast<double>(values.as<float>()[i]) : std::nan(""));
    }
    series.push_back(std::move(one));
  }
  return series;
}

// --- Samples, as a run with this config would draw them ---

class SamplePages {
 public:
  SamplePages(const train::TrainConfig& config, train::HtmlReport& page)
      : config_(config),
        model_(train::resolve_model(config)),
        data_(train::open_run_data(config, model_)),
        page_(page) {}

  void add_overview();
  void add(int64_t number);

 private:
  const train::TrainConfig& config_;
  const DitConfig model_;
  const train::RunData data_;
  train::HtmlReport& page_;
};

void SamplePages::add_overview() {
  page_.add_paragraph(fmt::format(
      "{}\nPictures: {} frames a sample of {} blocks, tiled to {} x {}{}.",
      data_.train->report().text(), 8 * model_.num_blocks + 1, model_.num_blocks,
      data_.sources[0].embodiment.tiled_height(), data_.sources[0].embodiment.tiled_width(),
      config_.picture_height > 0 ? fmt::format("; the autoencoder sees {} x {}",
                                               config_.picture_height, config_.picture_width)
                                 : ""));
}

void SamplePages::add(int64_t number) {
  const int64_t step = number / config_.global_batch_size,
                index = number % config_.global_batch_size;
  const auto worker = data_.train->make_worker();
  const data::Sample sample = data_.train->load(step, index, *worker);
  const train::RunSource& source = data_.sources[static_cast<size_t>(sample.id.dataset)];
  const data::Draw draw = data_.train->draw(step, index);
  const auto& rows = draw.window.frame_rows;
  page_.add_heading(fmt::format("Sample {} of step {}: {}, episode {}, rows {} to {}", index,
                                step + 1, source.name, sample.id.episode_index, rows.front(),
                                rows.back()));
  page_.add_paragraph(sample.prompt);
  page_.add_paragraph(fmt::format("{} tokens with the end of sequence, of at most {}.",
                                  sample.token_ids.size(), model_.text_len));
  page_.add_image(first_png(sample.video), "The first frame after crop, jitter and tiling");
  page_.add_image(sheet_png(sample.video), fmt::format("All {} frames, made smaller: rows {}",
                                                       rows.size(), fmt::join(rows, ", ")));
  const data::RobotCodec& codec = source.train_builder->codec();
  add_charts(page_, "actions as the model sees them", "action of the sample",
             curves(sample.action, codec.action_names(), &sample.action_mask));
  add_charts(page_, "states as the model sees them", "block",
             curves(sample.state, codec.state_names(), nullptr));
}

// --- Episodes as they lie in the files ---

const data::Episode& chosen_episode(const data::Dataset& dataset, int64_t index) {
  if (index < 0) return dataset.episodes().front();
  for (const data::Episode& episode : dataset.episodes()) {
    if (episode.index == index) return episode;
  }
  throw ConfigError(
      {.where = "--episode",
       .what = "the dataset has no such episode",
       .got = std::to_string(index),
       .expected = fmt::format("one of {} episodes, {} to {}", dataset.episodes().size(),
                               dataset.episodes().front().index, dataset.episodes().back().index),
       .remedy = "`wam data info --episodes` lists them."});
}

void add_raw_slices(train::HtmlReport& page, const char* group, const data::EpisodeTable& table,
                    const std::vector<data::ModalitySlice>& slices) {
  for (const data::ModalitySlice& slice : slices) {
    const auto found = table.numeric.find(slice.original_key);
    if (found == table.numeric.end()) continue;
    const int64_t width = found->second.shape()[1];
    std::vector<train::ChartSeries> series;
    for (int64_t dim = slice.begin; dim < std::min(slice.end, width); ++dim) {
      train::ChartSeries one{
          .name = fmt::format("{}[{}]", slice.key, dim - slice.begin), .xs = {}, .ys = {}};
      for (int64_t row = 0; row < table.num_rows; ++row) {
        one.xs.push_back(static_cast<double>(row));
        one.ys.push_back(found->second.as<double>()[static_cast<size_t>(row * width + dim)]);
      }
      series.push_back(std::move(one));
    }
    add_charts(page, std::string(group) + " " + slice.key, "row", series);
  }
}

void add_raw_episode(train::HtmlReport& page, const data::Dataset& dataset, int64_t index) {
  const data::Episode& episode = chosen_episode(dataset, index);
  page.add_heading(fmt::format("Episode {}: {} rows", episode.index, episode.length));
  if (!episode.tasks.empty()) page.add_paragraph(join(episode.tasks, "\n"));
  std::vector<int64_t> rows;
  const int64_t count = std::min(kRawPictures, episode.length);
  for (int64_t i = 0; i < count; ++i)
    rows.push_back(i * (episode.length - 1) / std::max<int64_t>(1, count - 1));
  const auto reader = dataset.make_frame_reader();
  for (const auto& [key, feature] : dataset.modality().video) {
    try {
      page.add_image(sheet_png(reader->read(episode, feature, rows)),
                     fmt::format("{}, rows {}", key, fmt::join(rows, ", ")));
    } catch (const DataError& error) {
      page.add_paragraph(std::string("No pictures of ") + key + ": " + error.what());
    }
  }
  const data::EpisodeTable table = dataset.read_table(episode);
  add_raw_slices(page, "state", table, dataset.modality().state);
  add_raw_slices(page, "action", table, dataset.modality().action);
}

void run_show(const ShowArgs& args) {
  std::vector<std::string> overrides = args.overrides;
  train::HtmlReport page("Dataset " + args.dataset.string());
  if (args.config.empty()) {
    if (!overrides.empty()) {
      throw ConfigError({.where = "wam data show",
                         .what = "overrides without a config",
                         .got = overrides.front(),
                         .remedy = "Add --config FILE, or leave them out."});
    }
    const auto dataset = data::open_dataset(args.dataset);
    page.add_paragraph(
        "Pictures and numbers as they lie in the files. With --config the page shows samples "
        "as that run would draw them.");
    add_raw_episode(page, *dataset, args.episode);
  } else {
    overrides.push_back("dataset.path=" + args.dataset.string());
    const train::TrainConfig config = train::load_config(args.config, overrides);
    SamplePages samples(config, page);
    samples.add_overview();
    for (int64_t i = 0; i < args.samples; ++i) samples.add(args.first_sample + i);
    if (args.episode >= 0) add_raw_episode(page, *data::open_dataset(args.dataset), args.episode);
  }
  page.write(args.out);
  fmt::print("wrote {}\n", args.out.string());
}

}  // namespace

void add_data_show(CLI::App& data) {
  auto args = std::make_shared<ShowArgs>();
  CLI::App* command = data.add_subcommand(
      "show",
      "An HTML page with an episode's pictures and numbers, or with samples as a run draws them");
  command->add_option("dataset", args->dataset, "folder of a LeRobot dataset")->required();
  command->add_option("--config", args->config, "YAML file of a run: show its samples");
  command->add_option("--out", args->out, "file to write")->capture_default_str();
  command->add_option("--samples", args->samples, "how many samples")
      ->check(CLI::Range(int64_t{1}, int64_t{100}))
      ->capture_default_str();
  command->add_option("--first", args->first_sample, "the first sample: its place in the stream")
      ->check(check_not_negative)
      ->capture_default_str();
  command->add_option("--episode", args->episode,
                      "an episode as it lies in the files; else the first");
  command->add_option("overrides", args->overrides, "key=value");
  command->callback([args] { run_show(*args); });
}

}  // namespace wam::cli
