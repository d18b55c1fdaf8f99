// Errors a user or the environment can cause. Every message has the form
//   [where] what, got <value>, expected <rule>. <remedy>
// so that the reader knows the place, the value, the rule and what to do.
// Only cli/ and serve/ catch; exit codes are 2 config, 3 data, 4 device or plan, 5 comm, 70 internal.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace wam {

// Parts of an error message; empty parts are left out of the text.
struct ErrorInfo {
  std::string where;     // file, config key, op, row ...
  std::string what;      // the fact, without a full stop
  std::string got;       // the offending value
  std::string expected;  // the rule it breaks
  std::string remedy;    // a sentence that says what to do
};

class Error : public std::runtime_error {
 public:
  Error(ErrorInfo info, int exit_code);
  const ErrorInfo& info() const { return info_; }
  int exit_code() const { return exit_code_; }
  const char* what() const noexcept override { return text_.c_str(); }
  // Puts "context: " in front of `where`; used while an error travels up.
  void add_context(std::string_view context);

 private:
  ErrorInfo info_;
  int exit_code_;
  std::string text_;
};

struct ConfigError : Error {
  explicit ConfigError(ErrorInfo info) : Error(std::move(info), 2) {}
};
// Datasets, checkpoints, caches: anything read from or written to files.
struct DataError : Error {
  explicit DataError(ErrorInfo info) : Error(std::move(info), 3) {}
};
struct DeviceError : Error {
  explicit DeviceError(ErrorInfo info) : Error(std::move(info), 4) {}
};
// A plan that does not fit or cannot be made.
struct PlanError : Error {
  explicit PlanError(ErrorInfo info) : Error(std::move(info), 4) {}
};
struct CommError : Error {
  explicit CommError(ErrorInfo info) : Error(std::move(info), 5) {}
};
// A graph that breaks an op's shape or dtype rule: a wrong model config or a bug of ours.
struct GraphError : Error {
  explicit GraphError(ErrorInfo info) : Error(std::move(info), 70) {}
};
// Our bug; thrown by WAM_CHECK.
struct InternalError : Error {
  explicit InternalError(ErrorInfo info) : Error(std::move(info), 70) {}
};

}  // namespace wam
