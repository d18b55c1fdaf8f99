#include "wam/train/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/log.h"
#include "wam/base/strings.h"
#include "wam/models/weights.h"
#include "wam/train/base_model.h"
#include "wam/train/checkpoint.h"
#include "wam/train/pixel_readout.h"
#include "wam/train/session.h"

namespace wam::train {
namespace {

constexpr int64_t kMeanWindows = 64;     // training windows behind the mean action
constexpr int64_t kReadoutWindows = 48;  // and behind the pixel read-out

class Evaluator {
 public:
  explicit Evaluator(const EvalOptions& options) : options_(options) {
    const std::filesystem::path folder = options.checkpoint;
    files_ = find_checkpoint(folder);
    if (options.config.empty() && !std::filesystem::exists(folder / "config.yaml")) {
      throw DataError({.where = folder.string(),
                       .what = "holds no config.yaml: it was not written by wam train",
                       .remedy = "Give the run's configuration with --config; wam import-config makes one."});
    }
    config_ = load_config(options.config.empty() ? (folder / "config.yaml").string() : options.config, {});
    if (!options.base.empty()) config_.model.base = options.base;
    if (files_.kind != CheckpointKind::kTraining) config_ = with_encoders_of(files_, with_base(config_));
    if (!config_.withhold.empty()) {
      throw ConfigError({.where = folder.string(),
                         .what = "was trained with something withheld, which a robot's loop cannot do",
                         .got = "withhold: [" + join(config_.withhold, ", ") + "]",
                         .remedy = "Compare the validation losses of such runs in their metrics.jsonl."});
    }
    choose_source();
    config_.global_batch_size = config_.micro_batch_size = config_.vae.sub_batch = 1;
    set_threads(config_.threads);
    model_ = resolve_model(config_);
    data_ = open_run_data(config_, model_);
    if (!options.all_episodes && data_.validation == nullptr) {
      throw ConfigError({.where = "dataset",
                         .what = "no episode was held out in this run",
                         .remedy = "Evaluate on another dataset with --all-episodes, or train with "
                                   "dataset.validation_last."});
    }
    open_model(folder);
  }

  EvalResult run() {
    EvalResult result;
    const data::RobotCodec& codec = data_.sources[0].validation_builder->codec();
    for (const std::string& name : codec_names(codec)) result.dims.push_back(name);
    result.horizon = model_.actions_per_block;
    fit_mean_and_readout(result);
    const auto& source = options_.all_episodes ? data_.train : data_.validation;
    for (int64_t i = 0; i < options_.windows; ++i) add_window(*source, i, result);
    summarise(result);
    return result;
  }

 private:
  // Of a mixture one dataset is evaluated at a time: robots differ in what their numbers mean.
  void choose_source() {
    DatasetSection& section = config_.dataset;
    // The model knows the numbers as they were normalised in training, whatever dataset this is.
    const std::filesystem::path statistics =
        files_.metadata_json.empty() ? std::filesystem::path(section.statistics) : files_.metadata_json;
    if (!section.mixture.empty()) {
      std::vector<std::string> names;
      for (const SourceSection& source : section.mixture) names.push_back(source.shown_name());
      const auto found = options_.source.empty() && names.size() == 1
                             ? names.begin()
                             : std::find(names.begin(), names.end(), options_.source);
      if (found == names.end()) {
        throw ConfigError({.where = "--source",
                           .what = options_.source.empty() ? "the run was trained on several datasets"
                                                           : "no such dataset in the run",
                           .got = options_.source,
                           .expected = "one of " + join(names, ", "),
                           .remedy = "Name the one to evaluate on."});
      }
      const SourceSection chosen = section.mixture[static_cast<size_t>(found - names.begin())];
      static_cast<SourceSection&>(section) = chosen;
      section.mixture.clear();
      const std::string own = section.embodiment.tag + "/" + chosen.shown_name();
      const std::vector<std::string> tags = data::metadata_tags(statistics);
      if (std::find(tags.begin(), tags.end(), own) != tags.end()) section.statistics_key = own;
    } else if (!options_.source.empty()) {
      throw ConfigError({.where = "--source",
                         .what = "the run was trained on one dataset",
                         .got = options_.source,
                         .remedy = "Leave the option out."});
    }
    section.statistics = statistics.string();
    if (!options_.dataset.empty()) section.path = options_.dataset;
  }

  // A full DreamZero checkpoint carries its encoders.
  static TrainConfig with_encoders_of(const CheckpointFiles& files, TrainConfig config) {
    const auto fill = [&](ModelPart part, std::string& weights) {
      const auto found = files.parts.find(part);
      if (weights.empty() && found != files.parts.end()) weights = found->second.string();
    };
    fill(ModelPart::kVae, config.vae.weights);
    fill(ModelPart::kText, config.text_encoder.weights);
    fill(ModelPart::kClip, config.clip.weights);
    return config;
  }

  static std::vector<std::string> codec_names(const data::RobotCodec& codec) {
    return {codec.action_names().begin(), codec.action_names().end()};
  }

  void open_model(const std::filesystem::path& folder) {
    vae_ = vae_config(config_.vae);
    if (config_.vae.standardise) read_latents(folder / "latents.json");
    prompt_tokens_ = prompt_rows(config_, model_, data_);
    encoders_plan_ = build_encoders(config_, model_, vae_, device_->target());
    programs_ = std::make_unique<OpenLoopPrograms>(model_, prompt_tokens_, device_->target());
    std::vector<const Program*> all = programs_->programs();
    all.insert(all.end(), {&encoders_plan_.pictures, &encoders_plan_.prompt});
    memory_ = device_->allocate(combine(all));
    load_encoder_weights(config_, encoders_plan_, *memory_);
    load_transformer(folder);
    encoders_ = std::make_unique<Encoders>(encoders_plan_, *device_, memory_, prompt_tokens_);
    loop_ = std::make_unique<OpenLoop>(model_, *programs_, *device_, memory_, options_.sampler);
  }

  void read_latents(const std::filesystem::path& path) {
    const auto [mean, std] = parse_latent_stats(read_text_file(path));
    vae_.mean = mean;
    vae_.std = std;
    check(vae_);
  }

  void load_transformer(const std::filesystem::path& folder) {
    StateAccess states(programs_->params(), memory_);
    if (options_.untrained) {
      initialise_weights(programs_->params(), config_.seed, states.writer(StateKind::kWeight));
    } else {
      wam::train::load_transformer(config_, folder.string(), programs_->params(), states.writer(StateKind::kWeight));
    }
  }

  Encoded encode(const data::Sample& sample) {
    std::vector<int64_t> dims = {1};
    for (const int64_t size : sample.video.shape().dims()) dims.push_back(size);
    return encoders_->encode(sample.video.reshaped(Shape(dims)), {sample.token_ids}, {sample.prompt});
  }

  // [F, h, w, C] of one window.
  static HostTensor without_batch(const HostTensor& x) {
    return x.reshaped(Shape(x.shape().dims().subspan(1)));
  }

  static const data::Episode& episode_of(const data::SampleBuilder& builder, const data::Draw& draw) {
    return builder.dataset().episodes()[static_cast<size_t>(draw.position)];
  }

  static std::vector<std::vector<double>> true_actions(const data::SampleBuilder& builder,
                                                       const data::Episode& episode,
                                                       const data::EpisodeTable& table,
                                                       const data::Draw& draw) {
    return rows_of(builder.raw_actions(episode, table, draw.window.action_rows),
                   draw.window.action_rows.size());
  }

  static std::vector<std::vector<double>> rows_of(const std::vector<double>& flat, size_t rows) {
    const size_t width = flat.size() / rows;
    std::vector<std::vector<double>> result;
    for (size_t i = 0; i < rows; ++i) {
      result.emplace_back(flat.begin() + static_cast<int64_t>(i * width),
                          flat.begin() + static_cast<int64_t>((i + 1) * width));
    }
    return result;
  }

  // Over training windows: the mean action, and what latents look like as pixels.
  void fit_mean_and_readout(EvalResult& result) {
    const auto worker = data_.train->make_worker();
    result.mean_action.assign(result.dims.size(), 0.0);
    int64_t rows = 0;
    for (int64_t i = 0; i < std::max(kMeanWindows, kReadoutWindows); ++i) {
      if (i < kMeanWindows) {
        const data::Draw draw = data_.train->draw(i, 0);
        const data::Episode& episode = episode_of(*data_.sources[0].train_builder, draw);
        const data::EpisodeTable table = data_.sources[0].dataset->read_table(episode);
        for (const auto& action : true_actions(*data_.sources[0].train_builder, episode, table, draw)) {
          for (size_t d = 0; d < action.size(); ++d) result.mean_action[d] += action[d];
          ++rows;
        }
      }
      if (i < kReadoutWindows) add_to_readout(data_.train->load(i, 0, *worker));
    }
    for (double& mean : result.mean_action) mean /= static_cast<double>(rows);
    if (readout_) readout_->fit();
  }

  void add_to_readout(const data::Sample& sample) {
    const Shape& picture = sample.video.shape();
    const int64_t stride = vae_.spatial_stride();
    // The read-out maps latents to the tiled picture; a resized picture has another grid.
    if (picture[1] != model_.latent_height * stride || picture[2] != model_.latent_width * stride) return;
    if (!readout_) readout_ = std::make_unique<PixelReadout>(model_.latent_channels, stride);
    readout_->add(without_batch(encode(sample).latents), sample.video);
  }

  void add_window(const data::DatasetSource& source, int64_t index, EvalResult& result) {
    const auto worker = source.make_worker();
    const data::Draw draw = source.draw(index, 0);
    const data::Sample sample = source.load(index, 0, *worker);
    const Encoded encoded = encode(sample);
    const OpenLoopPrediction prediction = loop_->run(encoded, sample.state, static_cast<uint64_t>(index));
    const data::SampleBuilder& builder = *data_.sources[0].validation_builder;
    const data::Episode& episode = episode_of(builder, draw);
    const data::EpisodeTable table = builder.dataset().read_table(episode);
    const auto truth = true_actions(builder, episode, table, draw);
    const auto states = builder.raw_states(episode, table, draw.window.state_rows);
    const auto predicted = decode_actions(builder.codec(), states, prediction.action);
    result.truth.insert(result.truth.end(), truth.begin(), truth.end());
    result.predicted.insert(result.predicted.end(), predicted.begin(), predicted.end());
    if (readout_ && result.strips.size() < 4) result.strips.push_back(strip(sample, prediction));
  }

  std::vector<std::vector<double>> decode_actions(const data::RobotCodec& codec,
                                                  const std::vector<double>& states,
                                                  const HostTensor& encoded) const {
    const auto horizon = static_cast<size_t>(model_.actions_per_block);
    const auto width = static_cast<size_t>(codec.action_width()), dim = static_cast<size_t>(model_.action_dim);
    std::vector<std::vector<double>> result;
    for (size_t block = 0; block < static_cast<size_t>(model_.num_blocks); ++block) {
      std::vector<double> raw(horizon * width);
      const auto state = std::span(states).subspan(block * static_cast<size_t>(codec.state_width()),
                                                   static_cast<size_t>(codec.state_width()));
      codec.decode_actions(encoded.as<float>().subspan(block * horizon * dim, horizon * dim), state, raw);
      for (auto& row : rows_of(raw, horizon)) result.push_back(std::move(row));
    }
    return result;
  }

  // True frames above, predicted below, one column a latent frame.
  HostTensor strip(const data::Sample& sample, const OpenLoopPrediction& prediction) const {
    const HostTensor decoded = readout_->decode(without_batch(prediction.latents));
    const int64_t count = decoded.shape()[0], h = decoded.shape()[1], w = decoded.shape()[2];
    HostTensor out(DType::kU8, Shape{2 * h, count * w, 3});
    for (int64_t f = 0; f < count; ++f) {
      for (int64_t r = 0; r < h; ++r) {
        const uint8_t* truth = sample.video.as<uint8_t>().data() + ((4 * f * h + r) * w) * 3;
        const uint8_t* guess = decoded.as<uint8_t>().data() + ((f * h + r) * w) * 3;
        std::copy_n(truth, w * 3, out.as<uint8_t>().data() + ((r * count + f) * w) * 3);
        std::copy_n(guess, w * 3, out.as<uint8_t>().data() + (((h + r) * count + f) * w) * 3);
      }
    }
    return out;
  }

  static void summarise(EvalResult& r) {
    const size_t dims = r.dims.size(), rows = r.truth.size();
    r.error.assign(dims, 0);
    r.mean_error.assign(dims, 0);
    r.error_by_step.assign(static_cast<size_t>(r.horizon), 0);
    for (size_t i = 0; i < rows; ++i) {
      for (size_t d = 0; d < dims; ++d) {
        r.error[d] += std::abs(r.predicted[i][d] - r.truth[i][d]) / static_cast<double>(rows);
        r.mean_error[d] += std::abs(r.mean_action[d] - r.truth[i][d]) / static_cast<double>(rows);
      }
    }
    const double per_step = static_cast<double>(rows) / static_cast<double>(r.horizon);
    for (size_t i = 0; i < rows; ++i) {
      for (size_t d = 0; d < dims; ++d) {
        const double unit = std::max(r.mean_error[d], 1e-12) * static_cast<double>(dims) * per_step;
        r.error_by_step[i % static_cast<size_t>(r.horizon)] +=
            std::abs(r.predicted[i][d] - r.truth[i][d]) / unit;
      }
    }
    for (size_t d = 0; d < dims; ++d) {
      r.relative_error += r.error[d] / std::max(r.mean_error[d], 1e-12) / static_cast<double>(dims);
    }
  }

  EvalOptions options_;
  CheckpointFiles files_;
  TrainConfig config_;
  DitConfig model_;
  std::unique_ptr<Device> device_ = make_cpu_device();
  RunData data_;
  VaeConfig vae_;
  int64_t prompt_tokens_ = 0;
  EncoderPrograms encoders_plan_;
  std::unique_ptr<OpenLoopPrograms> programs_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Encoders> encoders_;
  std::unique_ptr<OpenLoop> loop_;
  std::unique_ptr<PixelReadout> readout_;
};

}  // namespace

EvalResult evaluate(const EvalOptions& options) { return Evaluator(options).run(); }

std::string describe(const EvalResult& r) {
  std::string text = fmt::format("{:<24} {:>12} {:>16} {:>8}\n", "action", "error", "of the mean", "ratio");
  for (size_t d = 0; d < r.dims.size(); ++d) {
    text += fmt::format("{:<24} {:>12.5f} {:>16.5f} {:>8.3f}\n", r.dims[d], r.error[d], r.mean_error[d],
                        r.error[d] / std::max(r.mean_error[d], 1e-12));
  }
  text += fmt::format("all dims: {:.3f} of the error of predicting the mean action\nby step of the block:",
                      r.relative_error);
  for (const double e : r.error_by_step) text += fmt::format(" {:.3f}", e);
  return text + "\n";
}

}  // namespace wam::train
