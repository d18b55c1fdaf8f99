// Log lines on stderr: "12:34:56 warning: text", coloured on a terminal. Thread-safe.
#pragma once

#include <string>

namespace wam {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Lines below `level` are dropped; kInfo at the start.
void set_log_level(LogLevel level);
LogLevel log_level();

void log_debug(const std::string& text);
void log_info(const std::string& text);
void log_warn(const std::string& text);
void log_error(const std::string& text);

}  // namespace wam
