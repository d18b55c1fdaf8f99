#include "wam/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace wam::cli {

ProgressLine::ProgressLine(std::string verb, std::string unit)
    : verb_(std::move(verb)), unit_(std::move(unit)), enabled_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::update(int64_t done, int64_t total, const std::string& note) {
  if (!enabled_) return;
  const std::string line = fmt::format("\r\033[K{} {}/{} {}{}", verb_, done, total, unit_, note);
  std::fputs(line.c_str(), stderr);
  drawn_ = true;
}

}  // namespace wam::cli
