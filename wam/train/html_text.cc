#include "wam/train/html_text.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "wam/base/quote.h"

namespace wam::train {
namespace {

void append_escaped(std::string& out, char c, bool is_utf8) {
  const auto byte = static_cast<unsigned char>(c);
  switch (c) {
    case '&':
      out += "&amp;";
      return;
    case '<':
      out += "&lt;";
      return;
    case '>':
      out += "&gt;";
      return;
    case '"':
      out += "&quot;";
      return;
    case '\'':
      out += "&#39;";
      return;
    default:
      break;
  }
  const bool is_control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F;
  if (is_control || (byte >= 0x80 && !is_utf8)) {
    out += fmt::format("\\x{:02x}", byte);
  } else {
    out += c;
  }
}

}  // namespace

std::string escape_html(std::string_view text) {
  const bool is_utf8 = is_valid_utf8(text);
  std::string out;
  out.reserve(text.size());
  for (char c : text) append_escaped(out, c, is_utf8);
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) out += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string format_number(double value) { return fmt::format("{:.7g}", value); }

}  // namespace wam::train
