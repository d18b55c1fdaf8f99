// Which queries attend to which keys, as a list of rectangles: every query of a range attends to
// all keys of that entry's key ranges. The query ranges partition the sequence, so a mask is never
// formed. Kept in an op's attributes as flat numbers: q_begin, q_end, num_ranges, (k_begin,
// k_end)*.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wam {

struct KeyRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const KeyRange&) const = default;
};

struct AttentionRect {
  int64_t q_begin = 0, q_end = 0;
  std::vector<KeyRange> keys;  // ascending, not empty, disjoint
  int64_t num_queries() const { return q_end - q_begin; }
  int64_t num_keys() const;
  bool operator==(const AttentionRect&) const = default;
};

std::vector<int64_t> flatten(std::span<const AttentionRect> rects);
// Inverse of flatten(). Throws GraphError if the numbers do not parse or break check_rects().
std::vector<AttentionRect> parse_rects(std::span<const int64_t> flat, int64_t length);
// Query ranges ascending and covering [0, length) exactly; each entry with at least one key, its
// key ranges ascending, disjoint, within [0, length). Throws GraphError naming the entry.
void check_rects(std::span<const AttentionRect> rects, int64_t length);
// (query, key) pairs that are computed.
int64_t num_pairs(std::span<const AttentionRect> rects);

}  // namespace wam
