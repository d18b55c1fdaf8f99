#include "wam/data/text_clean.h"

#include <algorithm>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/html_unescape.h"
#include "wam/data/mojibake.h"
#include "wam/data/unicode.h"

namespace wam::data {
namespace {

std::u32string checked_decode(std::string_view text) {
  if (is_valid_utf8(text)) return decode_utf8(text);
  throw DataError({.where = "text " + quote(text, 60),
                   .what = "not valid UTF-8",
                   .remedy = "Write the dataset's instructions as UTF-8."});
}

// Letters that one character stands for; empty for characters that stay.
std::u32string_view ligature(char32_t c) {
  switch (c) {
    case 0x132:
      return U"IJ";
    case 0x133:
      return U"ij";
    case 0x149:
      return U"\u02BCn";
    case 0x1C4:
      return U"D\u017D";
    case 0x1C5:
      return U"D\u017E";
    case 0x1C6:
      return U"d\u017E";
    case 0x1C7:
      return U"LJ";
    case 0x1C8:
      return U"Lj";
    case 0x1C9:
      return U"lj";
    case 0x1CA:
      return U"NJ";
    case 0x1CB:
      return U"Nj";
    case 0x1CC:
      return U"nj";
    case 0x1F1:
      return U"DZ";
    case 0x1F2:
      return U"Dz";
    case 0x1F3:
      return U"dz";
    case 0xFB00:
      return U"ff";
    case 0xFB01:
      return U"fi";
    case 0xFB02:
      return U"fl";
    case 0xFB03:
      return U"ffi";
    case 0xFB04:
      return U"ffl";
    case 0xFB05:
      return U"\u017Ft";
    case 0xFB06:
      return U"st";
    default:
      return {};
  }
}

bool has_width_form(char32_t c) { return c >= 0xFF01 && c <= 0xFFEF; }

std::u32string expand(std::u32string_view text) {
  std::u32string result;
  for (char32_t c : text) {
    const std::u32string_view letters = ligature(c);
    if (!letters.empty())
      result += letters;
    else if (c == 0x3000)
      result += U' ';
    else if (has_width_form(c))
      result += to_nfkc({&c, 1});
    else
      result += c;
  }
  return result;
}

void straighten_quotes(std::u32string& text) {
  for (char32_t& c : text) {
    if (c == 0x2BC || (c >= 0x2018 && c <= 0x201B)) c = U'\'';
    if (c >= 0x201C && c <= 0x201F) c = U'"';
  }
}

std::u32string unix_lines(std::u32string_view text) {
  std::u32string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (c == U'\r' && i + 1 < text.size() && text[i + 1] == U'\n') continue;
    result += c == U'\r' || c == 0x2028 || c == 0x2029 || c == 0x85 ? U'\n' : c;
  }
  return result;
}

// Length of "ESC [ digits-and-semicolons letter" at the start of `text`; 0 if it is none.
size_t terminal_escape_length(std::u32string_view text) {
  if (text.size() < 3 || text[0] != 0x1B || text[1] != U'[') return 0;
  size_t at = 2;
  while (at < text.size() && ((text[at] >= U'0' && text[at] <= U'9') || text[at] == U';')) ++at;
  if (at == text.size()) return 0;
  const char32_t c = text[at];
  const bool letter = (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
  return letter ? at + 1 : 0;
}

bool is_unwanted(char32_t c) {
  return c < 0x9 || c == 0xB || (c >= 0xE && c < 0x20) || c == 0x7F ||
         (c >= 0x206A && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFC);
}

std::u32string remove_controls(std::u32string_view text) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    const size_t escape = terminal_escape_length(text.substr(at));
    if (escape == 0 && !is_unwanted(text[at])) result += text[at];
    at += std::max<size_t>(escape, 1);
  }
  return result;
}

std::u32string fix_segment(std::u32string text, bool unescape) {
  while (true) {
    const std::u32string before = text;
    if (unescape) text = html_unescape_careful(text);
    text = expand(fix_c1_controls(fix_mojibake(std::move(text))));
    straighten_quotes(text);
    text = to_nfc(remove_controls(unix_lines(text)));
    if (text == before) return text;
  }
}

std::u32string fixed(std::u32string_view text) {
  std::u32string result;
  bool unescape = true;
  while (!text.empty()) {
    const size_t line_break = text.find(U'\n');
    const size_t length = line_break == text.npos ? text.size() : line_break + 1;
    const std::u32string segment(text.substr(0, length));
    if (segment.find(U'<') != segment.npos) unescape = false;
    result += fix_segment(segment, unescape);
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace

std::string fix_text(std::string_view text) { return encode_utf8(fixed(checked_decode(text))); }

std::u32string collapse_whitespace(std::u32string_view text) {
  std::u32string result;
  for (char32_t c : text) {
    if (!is_space(c))
      result += c;
    else if (!result.empty() && result.back() != U' ')
      result += U' ';
  }
  if (!result.empty() && result.back() == U' ') result.pop_back();
  return result;
}

std::string clean_prompt(std::string_view text) {
  const std::u32string once = html_unescape(fixed(checked_decode(text)));
  return encode_utf8(collapse_whitespace(html_unescape(once)));
}

std::string lower_case(std::string_view text) {
  return encode_utf8(to_lower(checked_decode(text)));
}

}  // namespace wam::data
