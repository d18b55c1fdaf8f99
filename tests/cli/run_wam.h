// For tests: runs the wam binary as a user does, and checks the form of what it says.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace wam::cli_test {

struct RunOptions {
  std::filesystem::path folder;   // working directory; empty: the test's own
  std::filesystem::path output;   // stdout goes here instead of RunResult::out
  int64_t max_file_bytes = -1;    // writing past it fails as on a full disk; -1: no limit
  bool obey_permissions = false;  // root, too, may not write where a folder's permissions forbid it
};

struct RunResult {
  int exit_code = -1;  // 128 + the signal where one ended it
  std::string out, err;
};

RunResult run_wam(const std::vector<std::string>& arguments, const RunOptions& options = {});

// The run ended with `exit_code` and one line "wam: [place] fact. Remedy" on stderr, the last and,
// log lines apart, the only one; it contains every one of `parts`.
::testing::AssertionResult is_refusal(const RunResult& result, int exit_code,
                                      const std::vector<std::string>& parts);
// Exit code 0 and nothing but log lines on stderr.
::testing::AssertionResult is_success(const RunResult& result);

}  // namespace wam::cli_test
