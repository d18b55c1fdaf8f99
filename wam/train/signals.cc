#include "wam/train/signals.h"

#include <csignal>

namespace wam::train {
namespace {

volatile std::sig_atomic_t g_requested = 0;
struct sigaction g_old_int, g_old_term;

void on_signal(int) { g_requested = 1; }

}  // namespace

SignalGuard::SignalGuard() {
  g_requested = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  // Back to the default after the first: pressing twice stops a hanging step.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &g_old_int);
  sigaction(SIGTERM, &action, &g_old_term);
}

SignalGuard::~SignalGuard() {
  sigaction(SIGINT, &g_old_int, nullptr);
  sigaction(SIGTERM, &g_old_term, nullptr);
}

bool SignalGuard::requested() { return g_requested != 0; }

}  // namespace wam::train
