#include "wam/train/proto_wire.h"

#include <bit>
#include <cstring>

namespace wam::train {
namespace {

constexpr int kMaxVarintBytes = 10;
constexpr uint64_t kMaxFieldNumber = (uint64_t{1} << 29) - 1;

uint64_t key(uint32_t field, ProtoType type) {
  return uint64_t{field} << 3 | static_cast<uint64_t>(type);
}

template <typename T>
void append_little_endian(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

}  // namespace

void ProtoWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) message_ += static_cast<char>(value | 0x80);
  message_ += static_cast<char>(value);
}

ProtoWriter& ProtoWriter::integer(uint32_t field, int64_t value) {
  varint(key(field, ProtoType::kVarint));
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtoWriter& ProtoWriter::real64(uint32_t field, double value) {
  varint(key(field, ProtoType::kFixed64));
  append_little_endian(message_, value);
  return *this;
}

ProtoWriter& ProtoWriter::real32(uint32_t field, float value) {
  varint(key(field, ProtoType::kFixed32));
  append_little_endian(message_, value);
  return *this;
}

ProtoWriter& ProtoWriter::bytes(uint32_t field, std::string_view value) {
  varint(key(field, ProtoType::kBytes));
  varint(value.size());
  message_ += value;
  return *this;
}

double ProtoField::real64() const { return std::bit_cast<double>(bits); }
float ProtoField::real32() const { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

std::optional<uint64_t> ProtoReader::varint() {
  uint64_t value = 0;
  for (int i = 0; i < kMaxVarintBytes && !rest_.empty(); ++i) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= uint64_t{byte & 0x7Fu} << (7 * i);
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<uint64_t> ProtoReader::fixed(size_t size) {
  if (rest_.size() < size) return std::nullopt;
  uint64_t value = 0;
  std::memcpy(&value, rest_.data(), size);
  rest_.remove_prefix(size);
  return value;
}

std::optional<ProtoField> ProtoReader::next() {
  const std::string_view start = rest_;
  const std::optional<uint64_t> tag = varint();
  if (!tag || *tag >> 3 == 0 || *tag >> 3 > kMaxFieldNumber) {
    rest_ = start;
    return std::nullopt;
  }
  ProtoField field{.number = static_cast<uint32_t>(*tag >> 3),
                   .type = static_cast<ProtoType>(*tag & 7)};
  std::optional<uint64_t> bits;
  switch (field.type) {
    case ProtoType::kVarint:
      bits = varint();
      break;
    case ProtoType::kFixed64:
      bits = fixed(8);
      break;
    case ProtoType::kFixed32:
      bits = fixed(4);
      break;
    case ProtoType::kBytes:
      bits = varint();
      break;
  }
  const bool is_bytes = field.type == ProtoType::kBytes;
  if (!bits || (is_bytes && *bits > rest_.size())) {
    // Not empty, so that is_whole() is false.
    rest_ = start;
    return std::nullopt;
  }
  field.bits = *bits;
  if (is_bytes) {
    field.bytes = rest_.substr(0, *bits);
    rest_.remove_prefix(*bits);
  }
  return field;
}

}  // namespace wam::train
