// A live line on stderr: "validating 17/200 episodes". Silent where stderr is no terminal, so that
// logs and error messages stay whole lines.
#pragma once

#include <cstdint>
#include <string>

namespace wam::cli {

class ProgressLine {
 public:
  // "<verb> <done>/<total> <unit><note>"
  ProgressLine(std::string verb, std::string unit);
  // Wipes the line, so that what follows starts at the left edge.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // One thread at a time.
  void update(int64_t done, int64_t total, const std::string& note = "");

 private:
  std::string verb_, unit_;
  bool enabled_;
  bool drawn_ = false;
};

}  // namespace wam::cli
