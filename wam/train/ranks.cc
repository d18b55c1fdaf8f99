#include "wam/train/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/dist/device_groups.h"
#include "wam/train/device.h"

namespace wam::train {
namespace {

constexpr std::pair<const char*, Strategy> kStrategies[] = {{"none", Strategy::kNone},
                                                            {"optimizer", Strategy::kOptimizer},
                                                            {"gradients", Strategy::kGradients},
                                                            {"full", Strategy::kFull},
                                                            {"hybrid", Strategy::kFull}};

// Ranks of a shard group.
int shard_size_of(const TrainConfig& c) {
  const auto ranks = static_cast<int>(c.ranks), given = static_cast<int>(c.sharding.shard_size);
  const std::string& strategy = c.sharding.strategy;
  if (strategy == "none") return 1;
  if (strategy != "hybrid") return given == 0 ? ranks : given;
  if (given < 2 || given >= ranks) {
    throw ConfigError({.where = "sharding.shard_size",
                       .what = "a hybrid layout has several groups of several ranks",
                       .got = fmt::format("{} with {} ranks", given, ranks),
                       .expected = "at least 2, fewer than there are ranks",
                       .remedy = "Set shard_size to the GPUs of a node, or use strategy: full."});
  }
  return given;
}

// Errors travel as text; their kind decides the exit code.
std::string encode(const Error& error) {
  return std::to_string(error.exit_code()) + " " + error.what();
}

}  // namespace

Sharding sharding_of(const TrainConfig& c) {
  Sharding sharding;
  for (const auto& [name, strategy] : kStrategies) {
    if (c.sharding.strategy == name) sharding.strategy = strategy;
  }
  sharding.mesh =
      dist::make_mesh(static_cast<int>(c.ranks), static_cast<int>(c.rank), shard_size_of(c));
  sharding.reshard_after_forward = c.sharding.reshard_after_forward;
  sharding.prefetch = c.sharding.prefetch;
  sharding.reduce_dtype = c.sharding.reduce_dtype;
  sharding.overlap = c.sharding.overlap;
  sharding.encoders = c.sharding.encoders == "sharded";
  return sharding;
}

Sharding encoder_sharding(const TrainConfig& c) { return c.ranks > 1 ? sharding_of(c) : Sharding{}; }

Ranks::Ranks(std::shared_ptr<dist::World> world)
    : world_(world ? std::move(world) : dist::World::join({})) {}

TrainConfig Ranks::place(TrainConfig c) const {
  c.ranks = size();
  c.rank = rank();
  const int64_t at_once = c.micro_batch_size * c.ranks;
  if (c.global_batch_size % at_once != 0) {
    throw ConfigError(
        {.where = "global_batch_size",
         .what = "the ranks' micro-batches do not add up to it",
         .got = std::to_string(c.global_batch_size),
         .expected = fmt::format("a multiple of micro_batch_size {} x {} ranks", c.micro_batch_size,
                                 c.ranks),
         .remedy = fmt::format("Choose e.g. global_batch_size={}, or another number of ranks.",
                               (c.global_batch_size / at_once + 1) * at_once)});
  }
  sharding_of(c);
  if (c.sharding.encoders == "sharded" && !c.encoder_device.empty() && c.encoder_device != c.device) {
    throw ConfigError({.where = "sharding.encoders",
                       .what = "encoders on a device of their own are not divided",
                       .got = "sharded, with encoder_device: " + c.encoder_device,
                       .remedy = "Set sharding.encoders: replicated, or leave encoder_device empty."});
  }
  // NCCL sends what it adds: a narrower type on the wire alone is not to be had.
  if (is_cuda(c.device) && c.sharding.reduce_dtype == DType::kBF16 && c.gradient_dtype == DType::kF32) {
    throw ConfigError({.where = "sharding.reduce_dtype",
                       .what = "on a GPU gradients are sent in the type in which they are kept",
                       .got = "bf16 beside gradient_dtype f32",
                       .expected = "f32, or gradient_dtype: bf16",
                       .remedy = "Set sharding.reduce_dtype: f32, or gradient_dtype: bf16 (with dtype: bf16)."});
  }
  if (c.device == "cuda" && !is_alone())
    c.device += ":" + std::to_string(world_->launch().local_rank);
  return c;
}

std::shared_ptr<const dist::Groups> Ranks::groups(const TrainConfig& c) const {
  // Alone, a strategy that is named still runs its collectives: what they cost can be seen.
  if (is_alone() && c.sharding.strategy == "none") return nullptr;
  if (is_cuda(c.device)) {
    const dist::Mesh mesh = sharding_of(c).mesh;
    if (dist::has_nccl())
      return dist::make_nccl_groups(mesh, world_->transport(), &world_->progress());
    return dist::make_staged_groups(mesh, world_->transport(),
                                    {.bucket_bytes = c.sharding.bucket_bytes});
  }
  return dist::make_host_groups(
      sharding_of(c).mesh, world_->transport(),
      {.bucket_bytes = c.sharding.bucket_bytes, .progress = &world_->progress()});
}

void Ranks::demand_equal(const std::string& what, const std::string& value) const {
  const std::vector<std::string> all = gather(value);
  std::map<std::string, std::vector<std::string>> ranks_of;
  for (size_t r = 0; r < all.size(); ++r) ranks_of[all[r]].push_back(std::to_string(r));
  if (ranks_of.size() == 1) return;
  std::string got;
  for (const auto& [seen, ranks] : ranks_of) {
    got += (got.empty() ? "" : "; ") + ("'" + seen + "' on rank " + join(ranks, ", "));
  }
  throw ConfigError(
      {.where = "start of " + std::to_string(size()) + " ranks",
       .what = "the ranks disagree on the " + what,
       .got = got,
       .expected = "the same on all",
       .remedy = "Start all ranks with one binary, one command line and one dataset."});
}

void Ranks::together(const std::function<void()>& f) const {
  std::string failure;
  try {
    f();
  } catch (const Error& error) {
    if (is_alone()) throw;
    failure = encode(error);
  }
  if (is_alone()) return;
  const std::vector<std::string> failures = gather(failure);
  const auto failed =
      std::ranges::find_if(failures, [](const std::string& text) { return !text.empty(); });
  if (failed == failures.end()) return;
  const size_t space = failed->find(' ');
  ErrorInfo info{.where = "rank " + std::to_string(failed - failures.begin()),
                 .what = failed->substr(space + 1)};
  const std::string code = failed->substr(0, space);
  if (code == "2") throw ConfigError(info);
  if (code == "3") throw DataError(info);
  throw CommError(info);
}

void Ranks::first_alone(const std::function<void()>& f) const {
  together([&] {
    if (is_first()) f();
  });
}

std::vector<double> Ranks::gather(std::span<const double> values) const {
  if (is_alone()) return {values.begin(), values.end()};
  return world_->gather(values);
}

double Ranks::smallest(double value) const {
  const std::vector<double> all = gather(std::span(&value, 1));
  return *std::ranges::min_element(all);
}

}  // namespace wam::train
