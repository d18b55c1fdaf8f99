#include "wam/base/philox.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace wam {
namespace {

// Counter layout: word 0 the block, words 1-2 the index, word 3 the step. The upper half of the
// step is folded into the key's second word; runs longer than 2^32 steps stay distinct.
PhiloxBlock draw(uint32_t key0, uint32_t key1, uint64_t step, uint64_t index, uint64_t block) {
  const uint32_t high_step = static_cast<uint32_t>(step >> 32);
  return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(index),
                 static_cast<uint32_t>(index >> 32) ^ static_cast<uint32_t>(block >> 32),
                 static_cast<uint32_t>(step)},
                key0, key1 + high_step * 0x27D4EB2Fu);
}

}  // namespace

uint32_t Random::next_u32() {
  const uint64_t lane = drawn_ & 3;
  if (lane == 0) block_ = draw(key0_, key1_, step_, index_, drawn_ >> 2);
  ++drawn_;
  return block_[lane];
}

uint64_t Random::below(uint64_t bound) {
  const uint64_t threshold = (0 - bound) % bound;
  while (true) {
    const unsigned __int128 product = static_cast<unsigned __int128>(next_u64()) * bound;
    if (static_cast<uint64_t>(product) >= threshold) return static_cast<uint64_t>(product >> 64);
  }
}

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

std::array<float, 4> normal_block(uint64_t seed, RandomUse use, uint64_t step, uint64_t index,
                                  uint64_t block) {
  const uint32_t key0 = static_cast<uint32_t>(seed);
  const uint32_t key1 =
      static_cast<uint32_t>(seed >> 32) ^ (static_cast<uint32_t>(use) * 0x85EBCA6Bu);
  const PhiloxBlock bits = draw(key0, key1, step, index, block);
  std::array<float, 4> result;
  for (int pair = 0; pair < 2; ++pair) {
    // (0, 1]: the logarithm's argument is never zero.
    const double u = (static_cast<double>(bits[2 * pair]) + 1.0) * 0x1.0p-32;
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(bits[2 * pair + 1]) * 0x1.0p-32;
    const double radius = std::sqrt(-2.0 * std::log(u));
    result[2 * pair] = static_cast<float>(radius * std::cos(angle));
    result[2 * pair + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return result;
}

void fill_normal(std::span<float> values, uint64_t seed, RandomUse use, uint64_t step, uint64_t index) {
  for (size_t begin = 0; begin < values.size(); begin += 4) {
    const auto four = normal_block(seed, use, step, index, begin / 4);
    const auto part = values.subspan(begin);
    std::copy_n(four.begin(), std::min<size_t>(4, part.size()), part.begin());
  }
}

}  // namespace wam
