// Hashes of bytes. SHA-256 (FIPS 180-4) where a file's identity must hold against anyone; XXH3 (64
// bits) where only accidents matter: cache keys and checksums of tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace wam {

using Sha256Digest = std::array<uint8_t, 32>;

// Streaming SHA-256. Copyable: a copy continues from the same state.
class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  // Digest of all bytes so far; the state is unchanged and update() may go on.
  Sha256Digest digest() const;
  std::string hex() const;

 private:
  void compress(const std::byte* block);
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  uint64_t length_bytes_ = 0;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

// XXH3 of 64 bits, seed 0; the value is stable across versions and machines.
uint64_t hash64(std::span<const std::byte> bytes);
uint64_t hash64(std::string_view text);

// Streaming form of hash64.
class Hash64 {
 public:
  Hash64();
  ~Hash64();
  Hash64(Hash64&&) noexcept;
  Hash64& operator=(Hash64&&) noexcept;
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 16 lower-case hexadecimal digits, as hashes are written in files.
std::string hex64(uint64_t value);

std::string file_sha256_hex(const std::filesystem::path& path);
uint64_t file_hash64(const std::filesystem::path& path);

}  // namespace wam
