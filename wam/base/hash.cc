#include "wam/base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

// Compiled in whole: no library to link, and built for our -march.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "wam/base/files.h"

namespace wam {
namespace {

// First 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr size_t kBlockBytes = 64;

uint32_t load_big_endian(const std::byte* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return __builtin_bswap32(value);
}

std::array<uint32_t, 64> message_schedule(const std::byte* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) w[i] = load_big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    const uint32_t s0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3);
    const uint32_t s1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  return w;
}

// The variables a..h of FIPS 180-4, section 6.2.2, step 3.
void one_round(std::array<uint32_t, 8>& v, uint32_t word) {
  const auto [a, b, c, d, e, f, g, h] = v;
  const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
  const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + word;
  const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
  const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
  v = {t1 + t2, a, b, c, d + t1, e, f, g};
}

}  // namespace

void Sha256::compress(const std::byte* block) {
  const std::array<uint32_t, 64> w = message_schedule(block);
  std::array<uint32_t, 8> v = state_;
  for (size_t i = 0; i < 64; ++i) one_round(v, kRoundConstants[i] + w[i]);
  for (size_t i = 0; i < 8; ++i) state_[i] += v[i];
}

void Sha256::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t used = length_bytes_ % kBlockBytes;
    const size_t count = std::min(bytes.size(), kBlockBytes - used);
    std::memcpy(pending_.data() + used, bytes.data(), count);
    length_bytes_ += count;
    bytes = bytes.subspan(count);
    if (used + count == kBlockBytes) compress(pending_.data());
  }
}

Sha256Digest Sha256::digest() const {
  Sha256 end = *this;
  const uint64_t length_bits = length_bytes_ * 8;
  // One bit 1, zeros up to 8 bytes before a block's end, the length in bits, big-endian.
  std::array<std::byte, kBlockBytes + 8> padding{std::byte{0x80}};
  end.update(
      std::span(padding).first((kBlockBytes + 55 - length_bytes_ % kBlockBytes) % kBlockBytes + 1));
  std::array<std::byte, 8> length;
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<std::byte>(length_bits >> (56 - 8 * i));
  end.update(length);
  Sha256Digest digest;
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<uint8_t>(end.state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

std::string Sha256::hex() const {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest()) text += {kHex[byte >> 4], kHex[byte & 15]};
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}
uint64_t hash64(std::string_view text) { return hash64(std::as_bytes(std::span(text))); }

struct Hash64::State {
  XXH3_state_t xxh;
};

Hash64::Hash64() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh); }
Hash64::~Hash64() = default;
Hash64::Hash64(Hash64&&) noexcept = default;
Hash64& Hash64::operator=(Hash64&&) noexcept = default;

void Hash64::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}

uint64_t Hash64::digest() const { return XXH3_64bits_digest(&state_->xxh); }

std::string hex64(uint64_t value) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = 0; i < 16; ++i) text[15 - i] = kHex[value >> (4 * i) & 15];
  return text;
}

std::string file_sha256_hex(const std::filesystem::path& path) {
  return sha256_hex(MappedFile(path).bytes());
}

uint64_t file_hash64(const std::filesystem::path& path) { return hash64(MappedFile(path).bytes()); }

}  // namespace wam
