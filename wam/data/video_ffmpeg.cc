#include "wam/data/video_ffmpeg.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "wam/base/error.h"

namespace wam::data {
namespace {

thread_local std::string last_log_line;

void keep_line(void*, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_ERROR) return;
  std::array<char, 512> line{};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  last_log_line = line.data();
  while (!last_log_line.empty() && last_log_line.back() == '\n') last_log_line.pop_back();
}

}  // namespace

void capture_ffmpeg_log() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(keep_line); });
}

std::string ffmpeg_error(int code) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  av_strerror(code, text.data(), text.size());
  std::string message = text.data();
  if (!last_log_line.empty()) message += " (" + last_log_line + ")";
  last_log_line.clear();
  return message;
}

void check_ffmpeg(int code, const std::string& where, const std::string& what,
                  const std::string& remedy) {
  if (code >= 0) return;
  throw DataError({.where = where, .what = what, .got = ffmpeg_error(code), .remedy = remedy});
}

}  // namespace wam::data
