// The wire format of protocol buffers, as far as small flat messages need it: varints, fixed-size
// numbers and byte strings by field number (protobuf.dev, "Encoding"). By hand and not by the
// library: libsentencepiece exports the symbols of another version of libprotobuf, and whichever of
// the two comes second in a process is bound to the first one's code and crashes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wam::train {

// Builds one message; fields in order of the calls.
class ProtoWriter {
 public:
  ProtoWriter& integer(uint32_t field, int64_t value);
  ProtoWriter& real64(uint32_t field, double value);
  ProtoWriter& real32(uint32_t field, float value);
  // Text, bytes, or an inner message.
  ProtoWriter& bytes(uint32_t field, std::string_view value);
  const std::string& message() const { return message_; }

 private:
  void varint(uint64_t value);
  std::string message_;
};

enum class ProtoType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct ProtoField {
  uint32_t number = 0;
  ProtoType type = ProtoType::kVarint;
  uint64_t bits = 0;       // of a number
  std::string_view bytes;  // a view into the message

  double real64() const;
  float real32() const;
};

// Walks the fields of one message.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}
  // The next field; nothing at the end or where the message is damaged.
  std::optional<ProtoField> next();
  // Whether the message was well-formed to its end; to be asked after next() gave nothing.
  bool is_whole() const { return rest_.empty(); }

 private:
  std::optional<uint64_t> varint();
  std::optional<uint64_t> fixed(size_t size);
  std::string_view rest_;
};

}  // namespace wam::train
