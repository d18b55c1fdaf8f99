#include "wam/data/mojibake.h"

#include <algorithm>
#include <optional>

#include "wam/base/quote.h"
#include "wam/data/unicode.h"

namespace wam::data {
namespace {

// Characters of bytes 0x80..0x9F in Windows-1252; the five unassigned bytes stand for themselves.
constexpr char32_t kUpperControls[32] = {
    0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

constexpr int kNoByte = -1;

int latin1_byte(char32_t c) { return c < 0x100 ? static_cast<int>(c) : kNoByte; }

int windows_byte(char32_t c) {
  if (c < 0x80 || (c >= 0xA0 && c < 0x100)) return static_cast<int>(c);
  for (int i = 0; i < 32; ++i) {
    if (kUpperControls[i] == c) return 0x80 + i;
  }
  return kNoByte;
}

// The text as bytes of a code page, re-read as UTF-8; nothing if either step fails.
std::optional<std::u32string> reread(std::u32string_view text, int (*byte_of)(char32_t)) {
  std::string bytes;
  for (char32_t c : text) {
    const int byte = byte_of(c);
    if (byte == kNoByte) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  if (!is_valid_utf8(bytes)) return std::nullopt;
  return decode_utf8(bytes);
}

bool is_continuation(char32_t c) {
  const int byte = windows_byte(c), plain = latin1_byte(c);
  return (byte >= 0x80 && byte <= 0xBF) || (plain >= 0x80 && plain <= 0xBF);
}

// Code points of a misread sequence by its first.
size_t misread_length(char32_t lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

// Letters that misread text is full of and that no word starts a symbol after.
bool is_sure(char32_t lead) {
  return lead == 0xC2 || lead == 0xC3 || lead == 0xE2 || lead == 0xE3 || lead == 0xF0;
}

// Length of the misread run at the start of `text`; 0 if there is none. One sequence with another
// letter in front may be ordinary text; two in a row are not.
size_t run_length(std::u32string_view text) {
  size_t at = 0, sequences = 0;
  bool sure = false;
  while (at < text.size()) {
    const size_t length = misread_length(text[at]);
    if (length == 0 || at + length > text.size()) break;
    const auto tail = text.substr(at + 1, length - 1);
    if (!std::all_of(tail.begin(), tail.end(), is_continuation)) break;
    sure |= is_sure(text[at]);
    at += length;
    ++sequences;
  }
  return sure || sequences > 1 ? at : 0;
}

// A byte in either code page: text often mixes C1 controls with Windows-1252 characters.
int either_byte(char32_t c) {
  const int byte = windows_byte(c);
  return byte != kNoByte ? byte : latin1_byte(c);
}

std::u32string fix_runs(std::u32string_view text) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    const size_t length = run_length(text.substr(at));
    const auto fixed = length > 0 ? reread(text.substr(at, length), either_byte) : std::nullopt;
    if (fixed) {
      result += *fixed;
      at += length;
    } else {
      result += text[at++];
    }
  }
  return result;
}

bool is_plain(std::u32string_view text) {
  return std::all_of(text.begin(), text.end(), [](char32_t c) { return c < 0x80; });
}

}  // namespace

std::u32string fix_mojibake(std::u32string text) {
  // Each repair shortens the text, so this ends.
  while (!is_plain(text)) {
    std::optional<std::u32string> fixed = reread(text, latin1_byte);
    if (!fixed) fixed = reread(text, windows_byte);
    if (!fixed) fixed = fix_runs(text);
    if (*fixed == text) break;
    text = *std::move(fixed);
  }
  return text;
}

std::u32string fix_c1_controls(std::u32string_view text) {
  std::u32string result(text);
  for (char32_t& c : result) {
    if (c >= 0x80 && c <= 0x9F) c = kUpperControls[c - 0x80];
  }
  return result;
}

}  // namespace wam::data
