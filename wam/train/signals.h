// SIGINT and SIGTERM as a flag that the training loop looks at between steps. A second signal ends
// the process at once.
#pragma once

namespace wam::train {

class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  static bool requested();
};

}  // namespace wam::train
