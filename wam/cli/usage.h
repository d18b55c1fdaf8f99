// Complaints about the command line in the one-line form of base/error.h.
#pragma once

#include "wam/base/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace wam::cli {

// What CLI11 threw while `app` parsed, as an error whose place is the command that was reached
// ("wam sim collect") and whose remedy offers the nearest command or option where one is unknown.
ConfigError usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace wam::cli
