// One rank's view of a training run's ranks: what they must agree on, and what they tell each other
// between steps.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "wam/dist/world.h"
#include "wam/train/config.h"
#include "wam/train/sharding.h"

namespace wam::train {

// How a run's states lie on this rank. Throws ConfigError for a layout that is not one.
Sharding sharding_of(const TrainConfig& config);
// What matters for frozen encoders: a lone rank's layout may name groups it does not have.
Sharding encoder_sharding(const TrainConfig& config);

class Ranks {
 public:
  // A null world is a world of one.
  explicit Ranks(std::shared_ptr<dist::World> world);

  int rank() const { return world_->rank(); }
  int size() const { return world_->size(); }
  bool is_first() const { return rank() == 0; }
  bool is_alone() const { return size() == 1; }
  dist::World& world() const { return *world_; }

  // The config as this rank runs it: with its place among the ranks, on its GPU. Throws ConfigError
  // where the batch cannot be dealt to the ranks.
  TrainConfig place(TrainConfig config) const;
  // Communicators for the config's layout; null for a world of one that divides nothing.
  std::shared_ptr<const dist::Groups> groups(const TrainConfig& config) const;

  // Throws ConfigError, on every rank, if `value` is not the same on all: names the odd ones.
  void demand_equal(const std::string& what, const std::string& value) const;
  // f on the first rank, while the others wait.
  void first_alone(const std::function<void()>& f) const;
  // f on every rank; if it throws on some, throws on all, with the error of the lowest such rank.
  void together(const std::function<void()>& f) const;
  // Values of all ranks, in the order of the ranks.
  std::vector<double> gather(std::span<const double> values) const;
  std::vector<std::string> gather(const std::string& text) const { return world_->gather(text); }
  double smallest(double value) const;

  void enter(const char* phase, int64_t step) const { world_->progress().enter(phase, step); }

 private:
  std::shared_ptr<dist::World> world_;
};

}  // namespace wam::train
