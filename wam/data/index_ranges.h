// Sets of episode indexes as a configuration writes them: "7", "0:100" (the end is not in it),
// "200:".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace wam::data {

// [begin, end)
struct RowRange {
  int64_t begin = 0, end = 0;
  bool operator==(const RowRange&) const = default;
};

class IndexRanges {
 public:
  static constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

  IndexRanges() = default;
  IndexRanges(std::initializer_list<int64_t> indexes);
  // Throws ConfigError at `where`: not a number or range, or an empty one.
  static IndexRanges parse(const std::vector<std::string>& texts, const std::string& where);

  bool empty() const { return ranges_.empty(); }
  bool contains(int64_t index) const;
  // As given, in order.
  const std::vector<RowRange>& ranges() const { return ranges_; }

 private:
  std::vector<RowRange> ranges_;
  std::vector<RowRange> sorted_;  // disjoint, ascending
};

// "0:3", "5", "7:"; throws ConfigError at `where`.
RowRange parse_row_range(std::string_view text, const std::string& where);
std::string to_text(const RowRange& range);

// Sorted and merged.
std::vector<RowRange> merged(std::vector<RowRange> ranges);

}  // namespace wam::data
