// Complaints about the command line in the one-line form of base/error.h.
#pragma once

#include <string>

#include "wam/base/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace wam::cli {

// What CLI11 threw while `app` parsed, as an error whose place is the command that was reached
// ("wam sim collect") and whose remedy offers the nearest command or option where one is unknown.
ConfigError usage_error(const CLI::App& app, const CLI::ParseError& error);

// Checks for CLI11's options: the fault in words, empty if there is none. CLI11 itself wraps a
// negative number that is given for an unsigned one.
std::string check_positive(const std::string& text);
std::string check_not_negative(const std::string& text);

}  // namespace wam::cli
