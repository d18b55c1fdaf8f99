// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a pure
// function from (key, counter) to 128 random bits. Every draw of this project names the use, the
// step and the sample it is for, so that no generator state exists to be saved or to get lost.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace wam {

using PhiloxBlock = std::array<uint32_t, 4>;

constexpr PhiloxBlock philox(PhiloxBlock counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// What a random number is for. Values are part of the run's definition: never renumber.
enum class RandomUse : uint32_t {
  kSampleOrder = 1,
  kWindow = 2,
  kCrop = 3,
  kJitter = 4,
  kLanguage = 5,
  kTimestep = 6,
  kVideoNoise = 7,
  kActionNoise = 8,
  kWeightInit = 9,
  kPromptDrop = 10,
  kActionTimestep = 11,
  kSampler = 12,
  kSim = 13,
  kTest = 14,
};

// A stream of numbers for one (seed, use, step, index). Copyable, 32 bytes, no heap.
// `index` is the sample's place in the global batch or the parameter's number, by use.
class Random {
 public:
  Random(uint64_t seed, RandomUse use, uint64_t step, uint64_t index)
      : key0_(static_cast<uint32_t>(seed)),
        key1_(static_cast<uint32_t>(seed >> 32) ^ (static_cast<uint32_t>(use) * 0x85EBCA6Bu)),
        step_(step),
        index_(index) {}

  uint32_t next_u32();
  uint64_t next_u64() { return (uint64_t{next_u32()} << 32) | next_u32(); }
  // Uniform in [0, 1) with 53 bits.
  double uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }
  // Uniform in [0, bound), bound > 0, by Lemire's multiply with rejection: no modulo bias.
  uint64_t below(uint64_t bound);
  // Standard normal by Box-Muller; uses two uniforms for each pair of results.
  double normal();

 private:
  uint32_t key0_, key1_;
  uint64_t step_, index_;
  uint64_t drawn_ = 0;
  PhiloxBlock block_{};
  double spare_ = 0;
  bool has_spare_ = false;
};

// One element of a field of standard normals, addressable in any order: what fills noise tensors on
// CPU and GPU alike. Element e of the field (seed, use, step, index). Float32, by Box-Muller on the
// block e / 4, so that four neighbours cost one Philox call.
std::array<float, 4> normal_block(uint64_t seed, RandomUse use, uint64_t step, uint64_t index,
                                  uint64_t block);
// Elements 0 .. values.size() - 1 of that field.
void fill_normal(std::span<float> values, uint64_t seed, RandomUse use, uint64_t step, uint64_t index);

}  // namespace wam
