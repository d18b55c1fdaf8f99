#include "wam/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace wam {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

// Never destroyed, so that destructors of static objects may still log.
spdlog::logger& logger() {
  static spdlog::logger* const kLogger = [] {
    auto* result =
        new spdlog::logger("wam", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    result->set_pattern("%H:%M:%S %^%l%$: %v");
    result->set_level(spdlog::level::info);
    result->flush_on(spdlog::level::trace);
    return result;
  }();
  return *kLogger;
}

void log_line(LogLevel level, const std::string& text) {
  logger().log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

LogLevel log_level() {
  for (LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (logger().level() <= to_spdlog(level)) return level;
  }
  return LogLevel::kOff;
}

void log_debug(const std::string& text) { log_line(LogLevel::kDebug, text); }
void log_info(const std::string& text) { log_line(LogLevel::kInfo, text); }
void log_warn(const std::string& text) { log_line(LogLevel::kWarning, text); }
void log_error(const std::string& text) { log_line(LogLevel::kError, text); }

}  // namespace wam
