#include "wam/train/tfrecord.h"

#include <array>
#include <cstring>

#include "wam/base/error.h"

namespace wam::train {
namespace {

constexpr size_t kHeaderBytes = 12, kFooterBytes = 4;

constexpr std::array<uint32_t, 256> make_table() {
  constexpr uint32_t kReversedPolynomial = 0x82F63B78;
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? kReversedPolynomial : 0);
    table[i] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

// So that a CRC over bytes that hold CRCs is not weakened.
uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

template <typename T>
std::string little_endian(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <typename T>
T load(std::string_view bytes, size_t position) {
  T value;
  std::memcpy(&value, bytes.data() + position, sizeof value);
  return value;
}

void check_crc(std::string_view bytes, uint32_t stored, size_t position, const std::string& where) {
  if (masked_crc32c(bytes) == stored) return;
  throw DataError({.where = where + ": byte " + std::to_string(position),
                   .what = "record does not have the stored checksum",
                   .remedy = "The file is damaged from here on: move it away."});
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::string frame_tfrecord(std::string_view bytes) {
  const std::string length = little_endian(uint64_t{bytes.size()});
  std::string record = length + little_endian(masked_crc32c(length));
  record += bytes;
  return record + little_endian(masked_crc32c(bytes));
}

std::vector<std::string_view> split_tfrecords(std::string_view file, const std::string& where) {
  std::vector<std::string_view> records;
  size_t position = 0;
  while (file.size() - position >= kHeaderBytes) {
    check_crc(file.substr(position, 8), load<uint32_t>(file, position + 8), position, where);
    const auto length = load<uint64_t>(file, position);
    const size_t rest = file.size() - position - kHeaderBytes;
    if (rest < kFooterBytes || length > rest - kFooterBytes) break;
    const std::string_view bytes = file.substr(position + kHeaderBytes, length);
    check_crc(bytes, load<uint32_t>(file, position + kHeaderBytes + length), position, where);
    records.push_back(bytes);
    position += kHeaderBytes + length + kFooterBytes;
  }
  return records;
}

}  // namespace wam::train
