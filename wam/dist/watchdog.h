// Notices that a rank died, stopped, hangs or gave up, and ends this process then: its main thread
// may wait for that rank for ever, in a place where no exception can reach it.
//
// Every rank's thread sends heartbeats over the star: the others to rank 0, rank 0 to all. A closed
// connection is noticed at once, silence after `silence_seconds`, and, if every rank still breathes
// but none gets on, after `hang_seconds` the rank that keeps the others waiting. Rank 0 tells all.
// The verdict names rank, step, phase and the collective, and is given to `on_failure`, which must
// not return.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "wam/dist/progress.h"
#include "wam/dist/rendezvous.h"

namespace wam::dist {

struct WatchdogOptions {
  double beat_seconds = 0.25;
  double silence_seconds = 30;
  double hang_seconds = 1800;
  // Called once, from the watchdog's thread. Null: one line on stderr, then exit code 5.
  std::function<void(const std::string& verdict)> on_failure = {};
};

class Watchdog {
 public:
  // Takes the star over. `progress` must outlive this.
  Watchdog(Star star, const Progress& progress, WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // From now on the end of other ranks is no failure, nor that of this one for them. All ranks call
  // it, after they have agreed that the run is over. Returns when the thread has ended.
  void leave();
  // Tells the others that this rank ends with an error of its own. Returns once it is sent.
  void report(const std::string& error);
  // For an error that may be another rank's fault (a closed connection): waits as long as silence
  // may last for the verdict, which ends the process; returns if there is none.
  void await_verdict();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wam::dist
