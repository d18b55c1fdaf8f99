#include "wam/tensor/attention_rects.h"

#include "wam/base/error.h"

namespace wam {
namespace {

[[noreturn]] void fail(std::string what, std::string got, std::string expected) {
  throw GraphError({.where = "attention rectangles",
                    .what = std::move(what),
                    .got = std::move(got),
                    .expected = std::move(expected)});
}

std::string range_text(int64_t begin, int64_t end) {
  return "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

}  // namespace

int64_t AttentionRect::num_keys() const {
  int64_t count = 0;
  for (const KeyRange& range : keys) count += range.size();
  return count;
}

std::vector<int64_t> flatten(std::span<const AttentionRect> rects) {
  std::vector<int64_t> flat;
  for (const AttentionRect& rect : rects) {
    flat.insert(flat.end(), {rect.q_begin, rect.q_end, static_cast<int64_t>(rect.keys.size())});
    for (const KeyRange& range : rect.keys) flat.insert(flat.end(), {range.begin, range.end});
  }
  return flat;
}

std::vector<AttentionRect> parse_rects(std::span<const int64_t> flat, int64_t length) {
  std::vector<AttentionRect> rects;
  size_t at = 0;
  while (at < flat.size()) {
    if (flat.size() - at < 3) fail("list ends inside an entry", std::to_string(flat.size()), "");
    AttentionRect rect{flat[at], flat[at + 1], {}};
    const int64_t ranges = flat[at + 2];
    at += 3;
    if (ranges < 0 || ranges > static_cast<int64_t>(flat.size() - at) / 2) {
      fail("list ends inside an entry", std::to_string(ranges) + " key ranges", "as many pairs");
    }
    for (int64_t i = 0; i < ranges; ++i, at += 2) rect.keys.push_back({flat[at], flat[at + 1]});
    rects.push_back(std::move(rect));
  }
  check_rects(rects, length);
  return rects;
}

void check_rects(std::span<const AttentionRect> rects, int64_t length) {
  int64_t covered = 0;
  for (const AttentionRect& rect : rects) {
    const std::string queries = "queries " + range_text(rect.q_begin, rect.q_end);
    if (rect.q_begin != covered || rect.q_end <= rect.q_begin) {
      fail("query ranges do not partition the sequence", queries,
           "a range that begins at " + std::to_string(covered));
    }
    covered = rect.q_end;
    int64_t last = 0;
    for (const KeyRange& range : rect.keys) {
      if (range.begin < last || range.end <= range.begin || range.end > length) {
        fail("key range out of order or bounds",
             queries + ", keys " + range_text(range.begin, range.end),
             "ascending, disjoint, in " + range_text(0, length));
      }
      last = range.end;
    }
    if (rect.keys.empty()) fail("no keys", queries, "at least one key range");
  }
  if (covered != length) {
    fail("query ranges do not cover the sequence", range_text(0, covered), range_text(0, length));
  }
}

int64_t num_pairs(std::span<const AttentionRect> rects) {
  int64_t pairs = 0;
  for (const AttentionRect& rect : rects) pairs += rect.num_queries() * rect.num_keys();
  return pairs;
}

}  // namespace wam
