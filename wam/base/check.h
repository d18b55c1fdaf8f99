// WAM_CHECK(cond) << "context": an always-on check of our own invariants. Throws InternalError with
// file and line. Never for what a user can cause: use the types of error.h there.
#pragma once

#include <sstream>

#include "wam/base/error.h"

namespace wam {

class CheckFailure {
 public:
  CheckFailure(const char* condition, const char* file, int line) {
    where_ << file << ":" << line;
    text_ << "check failed: " << condition;
  }
  [[noreturn]] ~CheckFailure() noexcept(false) {
    throw InternalError({.where = where_.str(), .what = text_.str(), .remedy = "This is a bug in wam."});
  }
  template <typename T>
  CheckFailure& operator<<(const T& value) {
    if (first_) text_ << ": ";
    first_ = false;
    text_ << value;
    return *this;
  }

 private:
  std::ostringstream where_, text_;
  bool first_ = true;
};

}  // namespace wam

#define WAM_CHECK(condition) \
  if (condition) [[likely]] {} else ::wam::CheckFailure(#condition, __FILE__, __LINE__)

#ifdef NDEBUG
#define WAM_DCHECK(condition) WAM_CHECK(true || (condition))
#else
#define WAM_DCHECK(condition) WAM_CHECK(condition)
#endif
