#include "wam/train/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/base/files.h"
#include "wam/base/hash.h"
#include "wam/base/log.h"
#include "wam/data/loader.h"
#include "wam/exec/cuda.h"
#include "wam/train/base_model.h"
#include "wam/train/checkpoint.h"
#include "wam/train/checkpoint_saver.h"
#include "wam/train/checkpoint_store.h"
#include "wam/train/device.h"
#include "wam/train/metrics_sink.h"
#include "wam/train/ranks.h"
#include "wam/train/run_folder.h"
#include "wam/train/schedule.h"
#include "wam/train/session.h"
#include "wam/train/signals.h"
#include "wam/train/source_losses.h"
#include "wam/train/step_inputs.h"
#include "wam/train/validation.h"

namespace wam::train {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr const char* kLosses[] = {"loss", "dynamics_loss", "action_loss"};
constexpr const char* kSampleLosses = "sample_losses";
constexpr const char* kNorm = "grad_norm_squared";
constexpr const char* kScalars = "scalars";
constexpr const char* kAlgorithms = "algorithms.txt";

// Every step gives the samples of step 0.
class FixedSource final : public data::SampleSource {
 public:
  explicit FixedSource(std::shared_ptr<const data::SampleSource> inner) : inner_(std::move(inner)) {}
  std::unique_ptr<data::WorkerState> make_worker() const override { return inner_->make_worker(); }
  data::Sample load(int64_t, int64_t index, data::WorkerState& worker) const override {
    return inner_->load(0, index, worker);
  }

 private:
  std::shared_ptr<const data::SampleSource> inner_;
};

std::string duration_text(double seconds) {
  const auto total = static_cast<int64_t>(std::max(0.0, seconds));
  if (total >= 3600) return fmt::format("{}h{:02}m", total / 3600, total % 3600 / 60);
  return fmt::format("{}m{:02}s", total / 60, total % 60);
}

}  // namespace

class Trainer::Impl {
 public:
  Impl(TrainConfig config, TrainOptions options)
      : options_(std::move(options)), ranks_(options_.world), config_(ranks_.place(with_base(config))) {
    demand_one_run(config);
    if (!ranks_.is_first()) options_.quiet = true;
    ranks_.first_alone([&] {
      folder_ = std::make_unique<RunFolder>(config_, options_.resume);
      store_.emplace(folder_->path(), keep_rule());
    });
    if (!store_) store_.emplace(config_.run_dir, keep_rule());
    const auto checkpoint = options_.resume ? store_->latest() : std::nullopt;
    ranks_.demand_equal("checkpoint to resume", checkpoint ? checkpoint->path.string() : "none");
    std::string latents;
    if (checkpoint && std::filesystem::exists(checkpoint->path / "latents.json")) {
      latents = read_text_file(checkpoint->path / "latents.json");
    }
    if (options_.resume && !checkpoint) log_warn("nothing to resume in " + config_.run_dir + ": starting anew");
    if (checkpoint) refuse_other_run(checkpoint->path);
    session_ = open_session(config_, latents, &ranks_, algorithms_of(checkpoint));
    ranks_.demand_equal("dataset", hex64(hash64(session_->data.metadata_json + session_->data.train->report().text())));
    if (folder_) folder_->describe(config_, options_.command_line, session_->data.metadata_json, describe(session_->plan));
    load_executors();
    if (folder_ && is_cuda(config_.device)) write_file_atomic(folder_->path() / kAlgorithms, cuda_algorithms());
    ranks_.together([&] { initialise(checkpoint); });
    schedule_ = {.lr = config_.optimizer.lr,
                 .min_lr = config_.optimizer.min_lr,
                 .warmup_steps = static_cast<int64_t>(
                     std::ceil(config_.optimizer.warmup_ratio * static_cast<double>(config_.steps))),
                 .total_steps = config_.steps};
    if (folder_) {
      sink_ = std::make_unique<MetricsSink>(folder_->path(), step_, session_->data.source_names());
    }
    if (session_->data.validation) {
      validation_ = std::make_unique<Validation>(*session_, ranks_);
    }
    open_saver();
  }

  TrainResult run() {
    SignalGuard signals;
    if (!options_.quiet) std::fputs(describe(session_->plan).c_str(), stdout);
    TrainResult result;
    result.first_validation_loss = result.last_validation_loss = NAN;
    if (validation_) result.first_validation_loss = result.last_validation_loss = validate();
    start_loader();
    const int64_t first_step = step_;
    started_ = now();
    while (step_ < config_.steps && !result.interrupted) {
      const StepMetrics metrics = train_step();
      if (step_ == first_step + 1) result.first = metrics;
      result.last = metrics;
      report(metrics, first_step);
      std::optional<double> best;
      if (validation_ && due(config_.validate_every)) {
        result.last_validation_loss = validate();
        best = as_best(result.last_validation_loss);
      }
      result.interrupted = interrupted_;
      check_saver();
      if (result.interrupted) announce_stop();
      const bool is_last = step_ == config_.steps || result.interrupted;
      if (due(config_.save_every) || is_last || best) save(metrics.loss, best);
      if (is_last && saver_) saver_->finish();
    }
    if (!options_.quiet) std::fputs("\n", stdout);
    result.steps_done = step_;
    if (const auto newest = store_->latest()) result.checkpoint = newest->path.string();
    return result;
  }

 private:
  // Before anything is done together: the config as given, and who reads it.
  void demand_one_run(const TrainConfig& config) const {
    ranks_.demand_equal("version", version_text());
    ranks_.demand_equal("configuration", hex64(hash64(to_yaml(config))));
    ranks_.demand_equal("command line", fmt::format("resume {} init_from {}", options_.resume, options_.init_from));
  }

  KeepRule keep_rule() const { return {config_.keep_last, config_.checkpoint.keep_every}; }

  void open_saver() {
    const auto best = store_->best();
    if (best && best->step <= step_) best_loss_ = best->loss;
    if (!ranks_.is_alone()) {
      if (config_.checkpoint.async && ranks_.is_first()) {
        log_info("checkpoints of several ranks are written by all of them while the run waits");
      }
      return;
    }
    SaverOptions options{.async = config_.checkpoint.async,
                         .retries = config_.checkpoint.retries,
                         .reserve_bytes = config_.checkpoint.reserve_bytes,
                         .checkpoint_bytes = checkpoint_bytes(*session_->plan.step.params)};
    const int64_t copy = state_bytes(session_->memory->plan(), *session_->plan.step.params);
    const int64_t free = free_host_bytes();
    if (options.async && copy > free) {
      log_warn(fmt::format("no room on the host for a copy of the states ({}, {} free): the run waits while "
                           "checkpoints are written",
                           format_bytes(copy), format_bytes(free)));
      options.async = false;
    }
    saver_ = std::make_unique<CheckpointSaver>(*store_, *session_->states, *session_->memory, options);
  }

  // A save that failed: the run goes on with what is saved, unless its states are lost.
  void check_saver() {
    const std::exception_ptr failure = saver_ ? saver_->take_failure() : nullptr;
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const NotFiniteError&) {
      throw;
    } catch (const std::exception& error) {
      const auto newest = store_->latest();
      log_error(fmt::format("checkpoint of step {} was not saved: {} The run goes on; the newest checkpoint is {}",
                            saver_->step(), error.what(), newest ? newest->path.string() : "none"));
      if (sink_) sink_->log_event(step_, "checkpoint_failed", error.what());
    }
  }

  void announce_stop() const {
    const double seconds = saver_ ? saver_->last_seconds() : 0;
    log_info(fmt::format("asked to stop: saving step {}{}", step_,
                         seconds > 0 ? fmt::format("; the last save took {:.1f} s", seconds) : ""));
  }

  // The loss, if it is the lowest so far and the run keeps its best checkpoint.
  std::optional<double> as_best(double loss) {
    if (!config_.checkpoint.best || !(loss < best_loss_)) return std::nullopt;
    best_loss_ = loss;
    return loss;
  }

  bool due(int64_t every) const { return every > 0 && step_ % every == 0; }

  void refuse_other_run(const std::filesystem::path& checkpoint) const {
    const TrainerState state = read_trainer_state(checkpoint);
    if (state.config_hash == resume_hash(config_)) return;
    throw ConfigError({.where = checkpoint.string(),
                       .what = "checkpoint belongs to a run with other settings",
                       .expected = "the settings in " + (checkpoint / "config.yaml").string(),
                       .remedy = "Resume with those, or start a new run with --init-from."});
  }

  // Of products, as the run chose them: others may give other bits.
  std::string algorithms_of(const std::optional<CheckpointStore::Entry>& checkpoint) const {
    if (checkpoint && std::filesystem::exists(checkpoint->path / kAlgorithms)) {
      return read_text_file(checkpoint->path / kAlgorithms);
    }
    return config_.algorithms.empty() ? "" : read_text_file(config_.algorithms);
  }

  void load_executors() {
    const StepPrograms& programs = session_->plan.step;
    const ExecOptions exec = session_->exec();
    first_ = session_->device->load(programs.first, session_->memory, exec);
    if (programs.add) add_ = session_->device->load(*programs.add, session_->memory, exec);
    if (programs.last) last_ = session_->device->load(*programs.last, session_->memory, exec);
    optimizer_ = session_->device->load(programs.optimizer, session_->memory, exec);
  }

  void initialise(const std::optional<CheckpointStore::Entry>& checkpoint) {
    StateAccess& states = *session_->states;
    if (checkpoint) {
      step_ = read_checkpoint(checkpoint->path, states).step;
      log_info(fmt::format("resumed {} at step {}", checkpoint->path.string(), step_));
      return;
    }
    const std::string source = options_.init_from.empty() ? config_.model.weights : options_.init_from;
    if (source.empty()) {
      initialise_weights(states.params(), config_.seed, states.writer(StateKind::kWeight),
                         [&](const Param& param, const ParamPart& part) { return states.draw(param, part, config_.seed); });
      return;
    }
    load_transformer(config_, source, states.params(), states.writer(StateKind::kWeight));
  }

  void start_loader() {
    std::shared_ptr<const data::SampleSource> source = session_->data.train;
    if (config_.fix_draw) source = std::make_shared<FixedSource>(source);
    loader_ = std::make_unique<data::Loader>(
        data::LoaderOptions{.first_step = step_,
                            .first_index = config_.rank * samples_here(),
                            .samples_per_step = samples_here(),
                            .micro_batch_size = config_.micro_batch_size,
                            .num_workers = config_.dataset.num_workers,
                            .prefetch_batches = config_.dataset.prefetch_batches},
        source);
  }

  // Forward and backward of all micro-batches, then one optimizer step. All of it is enqueued before
  // the first number is waited for, and with it, where nothing else comes between, the inputs of the
  // next step's first micro-batch: the device does not wait for the host.
  StepMetrics train_step() {
    const double start = now(), waited = loader_->wait_seconds(), talked = collective_seconds();
    ranks_.enter("forward and backward", step_ + 1);
    std::vector<std::vector<data::SampleId>> ids;
    for (int64_t micro = 0; micro < config_.accumulate(); ++micro) {
      if (!ready_) prepare(step_, micro);
      ids.push_back(std::exchange(ready_, std::nullopt).value());
      run_micro_batch(micro);
    }
    StepMetrics m{.step = step_ + 1, .lr = learning_rate(schedule_, step_)};
    // Skipped steps do not count as updates of the moments: t follows the updates made.
    optimizer_->write("schedule", adamw_schedule(m.lr, config_.optimizer.weight_decay,
                                                 config_.optimizer.adamw, step_ + 1));
    if (saver_) saver_->await_copy();
    ranks_.enter("optimizer", step_ + 1);
    optimizer_->run();
    for (const char* name : {kNorm, kScalars}) optimizer_->fetch(name);
    const bool validates = validation_ && (step_ + 1) % std::max<int64_t>(1, config_.validate_every) == 0 &&
                           config_.validate_every > 0;
    if (step_ + 1 < config_.steps && !validates) prepare(step_ + 1, 0);
    collect(m, ids);
    ++step_;
    const double seconds = now() - start;
    if (!ranks_.is_alone()) compare_ranks(m, seconds, collective_seconds() - talked);
    m.samples_per_second = static_cast<double>(config_.global_batch_size) / seconds;
    m.wait_share = (loader_->wait_seconds() - waited) / seconds;
    return m;
  }

  // This rank's part of the global batch.
  int64_t samples_here() const { return config_.global_batch_size / config_.ranks; }

  Executor& executor_of(int64_t micro) {
    if (micro == 0) return *first_;
    return last_ && micro + 1 == config_.accumulate() ? *last_ : *add_;
  }

  // Puts a micro-batch into the inputs of its program.
  void prepare(int64_t step, int64_t micro) {
    const data::Batch batch = loader_->next();
    Executor& executor = executor_of(micro);
    const Encoded encoded = session_->encode_for(executor, batch);
    const DrawPlace place{config_.seed, config_.fix_draw ? 0 : step, batch.first_index};
    make_step_inputs(config_, session_->plan.model, batch, encoded, place).write_to(executor);
    ready_ = batch.ids;
  }

  void run_micro_batch(int64_t micro) {
    Executor& executor = executor_of(micro);
    executor.run();
    for (const char* name : kLosses) executor.fetch(name);
    if (is_mixture()) executor.fetch(kSampleLosses);
  }

  bool is_mixture() const { return session_->data.sources.size() > 1; }

  // Waits for the step's numbers.
  void collect(StepMetrics& m, const std::vector<std::vector<data::SampleId>>& ids) {
    const double share = 1.0 / static_cast<double>(config_.accumulate() * config_.ranks);
    std::string suspects;
    // Three losses a micro-batch, those of its samples where it is a mixture, and at last whether this
    // rank was asked to stop.
    std::vector<double> own;
    for (int64_t micro = 0; micro < config_.accumulate(); ++micro) {
      const auto& here = ids[static_cast<size_t>(micro)];
      Executor& executor = executor_of(micro);
      for (const char* name : kLosses) own.push_back(executor.fetched(name).as<float>()[0]);
      if (!std::isfinite(own[own.size() - 3])) suspects += samples_text(here, !suspects.empty());
      if (!is_mixture()) continue;
      const HostTensor losses = executor.fetched(kSampleLosses);
      const std::vector<double> records = sample_records(here, losses.as<float>());
      own.insert(own.end(), records.begin(), records.end());
    }
    own.push_back(SignalGuard::requested() ? 1 : 0);
    const std::vector<double> all = ranks_.gather(own);
    SourceSums sums(session_->data.sources.size());
    const auto records = static_cast<size_t>(is_mixture() ? 3 * config_.micro_batch_size : 0);
    for (size_t i = 0; i < all.size();) {
      for (int64_t micro = 0; micro < config_.accumulate(); ++micro, i += 3 + records) {
        m.loss += share * all[i];
        m.dynamics_loss += share * all[i + 1];
        m.action_loss += share * all[i + 2];
        sums.add(std::span(all).subspan(i + 3, records));
      }
      interrupted_ = interrupted_ || all[i++] != 0;
    }
    if (config_.log_samples) m.samples = samples_of_all(ids);
    if (is_mixture()) m.sources = sums.means();
    m.grad_norm = std::sqrt(optimizer_->fetched(kNorm).as<float>()[0]);
    m.skipped = optimizer_->fetched(kScalars).as<float>()[kAdamwSkip] != 0;
    if (!m.skipped) return;
    const bool gradient_alone = std::isfinite(m.loss);
    for (const auto& micro : ids) {
      if (gradient_alone) suspects += samples_text(micro, !suspects.empty());
    }
    on_non_finite(m, of_all_ranks(suspects), gradient_alone);
  }

  std::string samples_of_all(const std::vector<std::vector<data::SampleId>>& ids) const {
    std::string own;
    for (const auto& micro : ids) own += samples_text(micro, !own.empty());
    return join(ranks_.gather(own), ", ");
  }

  // "rank 2: episode 7 row 31; rank 3: ..." of the ranks that have something to say.
  std::string of_all_ranks(const std::string& samples) const {
    if (ranks_.is_alone()) return samples;
    std::string text;
    const std::vector<std::string> all = ranks_.gather(samples);
    for (size_t r = 0; r < all.size(); ++r) {
      if (!all[r].empty()) text += fmt::format("{}rank {}: {}", text.empty() ? "" : "; ", r, all[r]);
    }
    return text;
  }

  double collective_seconds() const {
    if (!session_->groups) return 0;
    double seconds = 0;
    for (const dist::Axis axis : {dist::Axis::kWorld, dist::Axis::kShard, dist::Axis::kReplica}) {
      seconds += session_->groups->on(axis).stats().seconds;
    }
    return seconds;
  }

  // Ranks that are slow themselves, not by waiting for others, are what holds a run up.
  void compare_ranks(StepMetrics& m, double seconds, double in_collectives) const {
    const double own[] = {seconds - in_collectives, in_collectives / seconds};
    const std::vector<double> all = ranks_.gather(own);
    for (size_t r = 0; 2 * r < all.size(); ++r) {
      if (all[2 * r] > m.slowest_seconds) {
        m.slowest_seconds = all[2 * r];
        m.slowest_rank = static_cast<int>(r);
      }
      m.collective_share = std::max(m.collective_share, all[2 * r + 1]);
    }
  }

  std::string samples_text(const std::vector<data::SampleId>& ids, bool more) const {
    std::string samples;
    for (const data::SampleId& id : ids) {
      samples += more || !samples.empty() ? ", " : "";
      if (is_mixture()) samples += session_->data.sources[static_cast<size_t>(id.dataset)].name + " ";
      samples += fmt::format("episode {} row {}", id.episode_index, id.first_anchor);
    }
    return samples;
  }

  void on_non_finite(const StepMetrics& m, const std::string& samples, bool gradient_alone) const {
    const std::string what = fmt::format("step {}: {} not finite", m.step,
                                         gradient_alone ? "gradient norm is" : "loss and gradient norm are");
    if (config_.optimizer.non_finite == "stop") {
      // Weights that one rank has lost reach all by being gathered: who keeps them is to blame.
      const std::string damaged = of_all_ranks(session_->states->first_non_finite());
      const std::string states = damaged.empty() ? "" : "; weights or moments that are not finite: " + damaged;
      throw DataError({.where = "training", .what = what, .got = "samples " + samples + states,
                       .remedy = "Check these samples, lower optimizer.lr, or set non_finite: skip."});
    }
    log_warn(what + "; update skipped; samples of " +
             (gradient_alone ? "the step: " : "the micro-batches concerned: ") + samples);
  }

  double validate() {
    ranks_.enter("validation", step_);
    const StepMetrics v = validation_->run();
    if (sink_) sink_->log_validation(step_, v);
    if (!options_.quiet) {
      fmt::print("\nvalidation at step {}: loss {:.5f} (video {:.5f}, action {:.5f})\n", step_, v.loss,
                 v.dynamics_loss, v.action_loss);
    }
    return v.loss;
  }

  void report(const StepMetrics& m, int64_t first_step) {
    if (step_ % config_.log_every != 0 && step_ != config_.steps) return;
    if (sink_) sink_->log_step(m);
    if (options_.quiet) return;
    const double per_step = (now() - started_) / static_cast<double>(step_ - first_step);
    fmt::print("\rstep {}/{}  loss {:.5f}  video {:.5f}  action {:.5f}  |g| {:.3f}  lr {:.2e}  {:.2f} samples/s"
               "  wait {:.0f} %  ETA {}   ",
               step_, config_.steps, m.loss, m.dynamics_loss, m.action_loss, m.grad_norm, m.lr,
               m.samples_per_second, 100 * m.wait_share,
               duration_text(per_step * static_cast<double>(config_.steps - step_)));
    std::fflush(stdout);
  }

  void save(double loss, std::optional<double> best) {
    ranks_.enter("checkpoint", step_);
    const TrainerState state{step_, loss, version_text(), resume_hash(config_)};
    std::map<std::string, std::string> extra = {{"metadata.json", session_->data.metadata_json}};
    const std::string latents = latent_stats_json(*session_);
    if (!latents.empty()) extra["latents.json"] = latents;
    if (is_cuda(config_.device)) extra[kAlgorithms] = cuda_algorithms();
    if (saver_) {
      const auto write = [this, state, extra](const std::filesystem::path& path, const StateAccess& states) {
        write_checkpoint(path, states, config_, state, extra);
      };
      saver_->begin({.step = step_, .best_loss = best, .write = write});
      return;
    }
    // The first rank makes the folder and gives it its name once all have written their part.
    const auto write = [&](const std::filesystem::path& path) {
      write_checkpoint_together(path, *session_->states, config_, state, extra, ranks_);
    };
    ranks_.first_alone([&] {
      store_->demand_room(checkpoint_bytes(*session_->plan.step.params), config_.checkpoint.reserve_bytes);
    });
    if (ranks_.is_first()) {
      store_->save(step_, write, best);
    } else {
      write(store_->temporary(step_));
    }
    ranks_.world().barrier();
  }

  TrainOptions options_;
  Ranks ranks_;
  TrainConfig config_;
  std::unique_ptr<RunFolder> folder_;  // null on other ranks than the first
  std::optional<CheckpointStore> store_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Executor> first_, add_, last_, optimizer_;  // StepPrograms
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<MetricsSink> sink_;
  std::unique_ptr<Validation> validation_;
  LearningRate schedule_;
  std::optional<std::vector<data::SampleId>> ready_;  // samples of the micro-batch that lies in the inputs
  std::unique_ptr<CheckpointSaver> saver_;  // null with several ranks
  int64_t step_ = 0;
  double best_loss_ = INFINITY;
  bool interrupted_ = false;
  double started_ = 0;
};

Trainer::Trainer(TrainConfig config, TrainOptions options)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(options))) {}
Trainer::~Trainer() = default;
TrainResult Trainer::run() { return impl_->run(); }

}  // namespace wam::train
