// This process among the ranks of its run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "wam/dist/groups.h"
#include "wam/dist/launch.h"
#include "wam/dist/watchdog.h"

namespace wam::dist {

struct WorldOptions {
  double meet_seconds = 300;  // for all ranks to come
  WatchdogOptions watchdog = {};
};

class World {
 public:
  // Meets the other ranks (a world of one meets nobody). Throws CommError.
  static std::shared_ptr<World> join(const Launch& launch, const WorldOptions& options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  bool is_first() const { return rank() == 0; }
  const Launch& launch() const { return launch_; }
  const std::shared_ptr<Transport>& transport() const { return transport_; }
  Progress& progress() { return progress_; }
  Watchdog* watchdog() { return watchdog_.get(); }  // null in a world of one

  // Host values of all ranks, by rank. All ranks call these together.
  std::vector<std::string> gather(const std::string& text);
  std::vector<double> gather(std::span<const double> values);  // as many on each rank
  void barrier();
  Communicator& host() { return *host_; }

  // Ends the run in agreement with all others. Without it the watchdogs of the others see a death.
  void leave();
  // For a handler of an exception: tells the others; if the error is a CommError, lets the watchdog
  // say first whose fault it is (it then ends the process).
  void report(const std::exception& error);

 private:
  World(const Launch& launch, std::shared_ptr<Transport> transport);
  Launch launch_;
  Progress progress_;
  std::shared_ptr<Transport> transport_;
  std::unique_ptr<HostCommunicator> host_;
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace wam::dist
