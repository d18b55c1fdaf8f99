// Reads little-endian fields from untrusted bytes; running past the end is a DataError.
#pragma once

#include <concepts>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "wam/base/error.h"

namespace wam {

class ByteCursor {
 public:
  // `where` names the source in messages.
  ByteCursor(std::span<const std::byte> bytes, std::string where, size_t position = 0)
      : bytes_(bytes), where_(std::move(where)) {
    seek(position);
  }

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }
  void seek(size_t position) {
    if (position > bytes_.size()) fail(position);
    position_ = position;
  }

  template <std::unsigned_integral T>
  T read() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  // A view into the bytes.
  std::string_view text(size_t length) {
    return {reinterpret_cast<const char*>(take(length)), length};
  }
  std::span<const std::byte> bytes(size_t length) { return {take(length), length}; }
  void skip(size_t length) { take(length); }

 private:
  const std::byte* take(size_t length) {
    if (length > remaining()) fail(position_ + length);
    const std::byte* result = bytes_.data() + position_;
    position_ += length;
    return result;
  }
  [[noreturn]] void fail(size_t wanted) const {
    throw DataError({.where = where_ + ": byte " + std::to_string(position_),
                     .what = "field past the end",
                     .got = "end at " + std::to_string(wanted),
                     .expected = "at most " + std::to_string(bytes_.size()),
                     .remedy = "The file is damaged or cut short: fetch it again."});
  }

  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  std::string where_;
};

}  // namespace wam
