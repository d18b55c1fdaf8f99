#include "wam/base/error.h"

#include <utility>

namespace wam {
namespace {

std::string compose(const ErrorInfo& info) {
  std::string text;
  if (!info.where.empty()) text += "[" + info.where + "] ";
  text += info.what;
  if (!info.got.empty()) text += ", got " + info.got;
  if (!info.expected.empty()) text += ", expected " + info.expected;
  text += ".";
  if (!info.remedy.empty()) text += " " + info.remedy;
  return text;
}

}  // namespace

Error::Error(ErrorInfo info, int exit_code)
    : std::runtime_error(info.what),
      info_(std::move(info)),
      exit_code_(exit_code),
      text_(compose(info_)) {}

void Error::add_context(std::string_view context) {
  info_.where = info_.where.empty() ? std::string(context) : std::string(context) + ": " + info_.where;
  text_ = compose(info_);
}

}  // namespace wam
