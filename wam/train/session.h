// What training, validation and evaluation share: data, programs, memory, executors, weights.
#pragma once

#include <memory>

#include "wam/train/encoders.h"
#include "wam/train/ranks.h"
#include "wam/train/run_data.h"
#include "wam/train/run_plan.h"
#include "wam/train/state_access.h"

namespace wam::train {

struct Session {
  TrainConfig config;
  std::unique_ptr<Device> device;
  std::unique_ptr<Device> encoder_device;  // null: the encoders run on `device`
  RunData data;
  RunPlan plan;
  std::shared_ptr<Memory> memory, encoder_memory;  // the same unless the encoders are apart
  std::unique_ptr<Encoders> encoders;
  std::unique_ptr<StateAccess> states;
  std::shared_ptr<const dist::Groups> groups;  // null in a world of one
  std::function<int64_t(int64_t)> most;        // of a number over all ranks; null without ranks
  ExecOptions exec() const {
    return {.mode = config.exec,
            .groups = groups,
            .cut_at_collectives = config.sharding.capture == "cut",
            .tune = config.tune && config.ranks == 1};
  }
  // Encodes a micro-batch for `step`: what the encoders make of pictures stays on the device where
  // they share it.
  Encoded encode_for(Executor& step, const data::Batch& batch);
  VaeConfig vae;  // with the latents' mean and std as used
  int64_t prompt_tokens = 0;
};

// Opens data, plans, allocates, loads frozen weights, measures latent statistics if the config asks
// for it (`latent_stats_json`: what an earlier run measured; empty: measure now).
// With several ranks all of them open theirs together, each with its own config (Ranks::place);
// `ranks` must outlive the session.
// `algorithms`: the products' algorithms of an earlier half of the run, as cuda_algorithms() gave them.
std::unique_ptr<Session> open_session(const TrainConfig& config,
                                      const std::string& latent_stats_json,
                                      const Ranks* ranks = nullptr,
                                      const std::string& algorithms = "");

// mean and std of the latents as JSON, stored with every checkpoint; empty if published ones are
// used.
std::string latent_stats_json(const Session& session);

// mean and std back from that text. Throws DataError.
std::pair<std::vector<double>, std::vector<double>> parse_latent_stats(const std::string& text);

// Sets OpenMP's threads; 0 leaves them.
void set_threads(int64_t threads);

}  // namespace wam::train
