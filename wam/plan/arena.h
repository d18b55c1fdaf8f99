// Assigns offsets in one arena to buffers with known lifetimes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wam {

// A buffer alive in steps [first, last], inclusive.
struct ArenaBuffer {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;
};

struct ArenaAssignment {
  std::vector<int64_t> offsets;  // one a buffer, multiples of kArenaAlignment
  int64_t peak = 0;
  int64_t lower_bound = 0;  // most bytes alive at once, each rounded up to the alignment
  int32_t peak_step = 0;
};

// Tensor cores and 16-byte loads want 16; cuBLASLt's fastest kernels want 256.
inline constexpr int64_t kArenaAlignment = 256;

// Tries several greedy orders (by size, by size x lifetime, by first use) with best fit and keeps
// the lowest peak. No two buffers alive at once overlap. O(n^2) in the worst case.
ArenaAssignment assign_arena(std::span<const ArenaBuffer> buffers);

}  // namespace wam
