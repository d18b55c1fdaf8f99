#include "wam/data/index_ranges.h"

#include <algorithm>
#include <charconv>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"

namespace wam::data {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& where) {
  throw ConfigError({.where = where,
                     .what = "not an index or a range of them",
                     .got = quote(text),
                     .expected = "7, \"0:100\" or \"200:\", the end left out of it",
                     .remedy = "Write it like that."});
}

int64_t parse_number(std::string_view number, std::string_view text, const std::string& where) {
  number = trim(number);
  int64_t value = -1;
  const char* end = number.data() + number.size();
  const auto [stop, code] = std::from_chars(number.data(), end, value);
  if (code != std::errc() || stop != end || value < 0 || value == IndexRanges::kNoEnd) {
    refuse(text, where);
  }
  return value;
}

}  // namespace

RowRange parse_row_range(std::string_view text, const std::string& where) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    const int64_t index = parse_number(text, text, where);
    return {index, index + 1};
  }
  const std::string_view first = trim(text.substr(0, colon)), last = trim(text.substr(colon + 1));
  const RowRange range{first.empty() ? 0 : parse_number(first, text, where),
                       last.empty() ? IndexRanges::kNoEnd : parse_number(last, text, where)};
  if (range.begin >= range.end) refuse(text, where);
  return range;
}

std::string to_text(const RowRange& range) {
  if (range.end == range.begin + 1) return std::to_string(range.begin);
  return std::to_string(range.begin) + ":" +
         (range.end == IndexRanges::kNoEnd ? "" : std::to_string(range.end));
}

std::vector<RowRange> merged(std::vector<RowRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const RowRange& a, const RowRange& b) { return a.begin < b.begin; });
  std::vector<RowRange> result;
  for (const RowRange& range : ranges) {
    if (!result.empty() && range.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, range.end);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

IndexRanges::IndexRanges(std::initializer_list<int64_t> indexes) {
  for (const int64_t index : indexes) ranges_.push_back({index, index + 1});
  sorted_ = merged(ranges_);
}

IndexRanges IndexRanges::parse(const std::vector<std::string>& texts, const std::string& where) {
  IndexRanges result;
  for (const std::string& text : texts) result.ranges_.push_back(parse_row_range(text, where));
  result.sorted_ = merged(result.ranges_);
  return result;
}

bool IndexRanges::contains(int64_t index) const {
  const auto next =
      std::upper_bound(sorted_.begin(), sorted_.end(), index,
                       [](int64_t i, const RowRange& range) { return i < range.begin; });
  return next != sorted_.begin() && index < std::prev(next)->end;
}

}  // namespace wam::data
