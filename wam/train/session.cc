#include "wam/train/session.h"

#include <omp.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "wam/base/error.h"
#include "wam/base/log.h"
#include "wam/base/strings.h"
#include "wam/data/loader.h"
#include "wam/models/stand_ins.h"
#include "wam/train/device.h"

namespace wam::train {
namespace {

constexpr int64_t kStatisticsClips = 32;

// Mean and std per latent channel over clips of the training set, drawn as training would.
void measure_latents(Session& s) {
  data::Loader loader({.samples_per_step = s.config.global_batch_size,
                       .micro_batch_size = s.config.micro_batch_size,
                       .num_workers = s.config.dataset.num_workers,
                       .prefetch_batches = s.config.dataset.prefetch_batches},
                      s.data.train);
  LatentStatistics statistics;
  for (int64_t clips = 0; clips < kStatisticsClips; clips += s.config.micro_batch_size) {
    statistics.add(s.encoders->encode_latents(loader.next().video));
  }
  s.vae.mean = statistics.mean();
  s.vae.std = statistics.std();
  log_info("latents standardised over " + std::to_string(kStatisticsClips) + " clips");
}

void load_encoders(Session& s) {
  Device& device = s.encoder_device ? *s.encoder_device : *s.device;
  Encoders::Most most;
  if (encoder_sharding(s.config).divides_encoders()) most = s.most;
  s.encoders = std::make_unique<Encoders>(s.plan.encoders, device, s.encoder_memory, s.prompt_tokens,
                                          s.exec(), most);
}

// The picture program has the normalisation compiled in: lowered again once it is known.
void rebuild_encoders(Session& s) {
  s.plan.encoders = build_encoders(s.config, s.plan.model, s.vae, target_of(encoder_device(s.config)),
                                   encoder_types(s.config));
  load_encoders(s);
}

void warn_odd_latents(const DitConfig& m) {
  if (m.latent_height % 2 == 0 && m.latent_width % 2 == 0) return;
  log_warn("latent picture " + std::to_string(m.latent_height) + " x " + std::to_string(m.latent_width) +
           " is odd: the last row or column is dropped and left out of the loss. Nearest even sizes: " +
           std::to_string(m.latent_height / 2 * 2) + " x " + std::to_string(m.latent_width / 2 * 2) +
           " and " + std::to_string((m.latent_height + 1) / 2 * 2) + " x " +
           std::to_string((m.latent_width + 1) / 2 * 2));
}

}  // namespace

void set_threads(int64_t threads) {
  if (threads > 0) omp_set_num_threads(static_cast<int>(threads));
}

std::unique_ptr<Session> open_session(const TrainConfig& config, const std::string& latent_stats,
                                      const Ranks* ranks, const std::string& algorithms) {
  set_threads(config.threads);
  auto s = std::make_unique<Session>();
  s->config = config;
  s->device = open_device(config.device, algorithms);
  if (encoder_device(config) != config.device) s->encoder_device = open_device(encoder_device(config));
  const DitConfig model = resolve_model(config);
  warn_odd_latents(model);
  s->data = open_run_data(config, model);
  s->prompt_tokens = prompt_rows(config, model, s->data);
  PlanSite site{.prompt_tokens = s->prompt_tokens};
  // A machine's free memory says little of what it can give; a card's is all there is.
  if (is_cuda(config.device) || fits_device(config.recompute)) {
    site.limit = limit_of(*s->device, is_cuda(config.device));
    // All ranks must make the same plan.
    if (ranks != nullptr) {
      site.limit->bytes = static_cast<int64_t>(ranks->smallest(static_cast<double>(site.limit->bytes)));
    }
  }
  s->plan = plan_run(config, site);
  s->memory = s->device->allocate(s->plan.memory);
  s->encoder_memory = s->encoder_device ? s->encoder_device->allocate(s->plan.encoder_memory) : s->memory;
  s->states = std::make_unique<StateAccess>(*s->plan.step.params, s->memory, config.dtype,
                                            sharding_of(config));
  if (ranks != nullptr) {
    s->groups = ranks->groups(config);
    s->most = [ranks](int64_t value) { return static_cast<int64_t>(-ranks->smallest(-static_cast<double>(value))); };
  }
  s->vae = vae_config(config.vae);
  load_encoder_weights(config, s->plan.encoders, *s->encoder_memory);
  load_encoders(*s);
  if (config.vae.standardise) {
    if (latent_stats.empty()) {
      measure_latents(*s);
    } else {
      std::tie(s->vae.mean, s->vae.std) = parse_latent_stats(latent_stats);
      check(s->vae);
    }
    rebuild_encoders(*s);
  }
  return s;
}

Encoded Session::encode_for(Executor& step, const data::Batch& batch) {
  if (encoder_device) return encoders->encode(batch.video, batch.token_ids, batch.prompts);
  return encoders->encode_into(step, batch.video, batch.token_ids, batch.prompts);
}

std::pair<std::vector<double>, std::vector<double>> parse_latent_stats(const std::string& text) {
  try {
    const nlohmann::json j = nlohmann::json::parse(text);
    return {j.at("mean").get<std::vector<double>>(), j.at("std").get<std::vector<double>>()};
  } catch (const nlohmann::json::exception&) {
    throw DataError({.where = "latents.json",
                     .what = "is damaged",
                     .expected = "lists 'mean' and 'std'",
                     .remedy = "Use an older checkpoint."});
  }
}

std::string latent_stats_json(const Session& s) {
  if (!s.config.vae.standardise) return "";
  return nlohmann::json{{"mean", s.vae.mean}, {"std", s.vae.std}}.dump() + "\n";
}

}  // namespace wam::train
