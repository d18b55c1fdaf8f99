#include "wam/base/quote.h"

#include <cstdint>

namespace wam {
namespace {

void append_escaped(std::string& out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '\'' || c == '\\') {
    out += '\\';
    out += c;
  } else if (byte >= 0x20 && byte < 0x7F) {
    out += c;
  } else {
    out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
}

// Bytes of the sequence that `lead` starts; 0 if it starts none.
int sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

bool in_range(uint32_t code, int length) {
  if (length == 3) return code >= 0x800 && (code < 0xD800 || code > 0xDFFF);
  if (length == 4) return code >= 0x10000 && code <= 0x10FFFF;
  return true;
}

}  // namespace

std::string quote(std::string_view text, size_t max_chars) {
  std::string out = "'";
  for (char c : text.substr(0, max_chars)) append_escaped(out, c);
  if (text.size() > max_chars) out += "...";
  return out + "'";
}

bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int length = sequence_length(lead);
    if (length == 0 || text.size() - i < static_cast<size_t>(length)) return false;
    uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (int k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + static_cast<size_t>(k)]);
      if ((byte & 0xC0) != 0x80) return false;
      code = code << 6 | (byte & 0x3Fu);
    }
    if (!in_range(code, length)) return false;
    i += static_cast<size_t>(length);
  }
  return true;
}

}  // namespace wam
