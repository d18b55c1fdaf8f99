#include "wam/data/html_unescape.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "wam/base/strings.h"
#include "wam/data/unicode.h"

namespace wam::data {
namespace {

struct Entity {
  std::string_view name;
  std::string_view text;
  bool bare;  // may stand without its semicolon
};

constexpr Entity kEntities[] = {
#include "wam/data/html_entities.inc"
};

const Entity* find_entity(std::string_view name) {
  const auto* end = std::end(kEntities);
  const auto* it = std::lower_bound(std::begin(kEntities), end, name,
                                    [](const Entity& e, std::string_view n) { return e.name < n; });
  return it != end && it->name == name ? it : nullptr;
}

// Text of a reference with its semicolon if it has one ("amp;", "amp"); nothing if unknown.
std::optional<std::u32string> named(std::string_view reference) {
  const bool closed = reference.ends_with(';');
  if (closed) reference.remove_suffix(1);
  const Entity* entity = find_entity(reference);
  if (entity == nullptr || (!closed && !entity->bare)) return std::nullopt;
  return decode_utf8(entity->text);
}

// What browsers make of numbers 0x80..0x9F: Windows-1252; zero where it has no character.
constexpr char32_t kWindows1252[32] = {
    0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

bool is_dropped(char32_t c) {
  const bool control = (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F;
  const bool nonchar = (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
  return control || nonchar;
}

std::u32string numbered(uint64_t number) {
  if (number == 0) return U"\uFFFD";
  if (number >= 0x80 && number <= 0x9F) return {kWindows1252[number - 0x80]};
  if ((number >= 0xD800 && number <= 0xDFFF) || number > 0x10FFFF) return U"\uFFFD";
  const auto c = static_cast<char32_t>(number);
  return is_dropped(c) ? std::u32string() : std::u32string{c};
}

int digit_value(char32_t c) {
  if (c >= U'0' && c <= U'9') return static_cast<int>(c - U'0');
  if (c >= U'a' && c <= U'f') return static_cast<int>(c - U'a') + 10;
  if (c >= U'A' && c <= U'F') return static_cast<int>(c - U'A') + 10;
  return 99;
}

struct Piece {
  size_t length = 0;  // code points of the source, 0: no reference here
  std::u32string text;
};

// "&#..." at the start of `text`.
Piece number_reference(std::u32string_view text) {
  size_t at = 2;
  const bool hex = at < text.size() && (text[at] == U'x' || text[at] == U'X');
  const int base = hex ? 16 : 10;
  if (hex) ++at;
  const size_t first = at;
  uint64_t number = 0;
  for (; at < text.size() && digit_value(text[at]) < base; ++at) {
    number = std::min<uint64_t>(number * base + digit_value(text[at]), 0x110000);
  }
  if (at == first) return {};
  if (at < text.size() && text[at] == U';') ++at;
  return {at, numbered(number)};
}

bool ends_name(char32_t c) {
  return c == U'\t' || c == U'\n' || c == U'\f' || c == U' ' || c == U'<' || c == U'&' ||
         c == U'#' || c == U';';
}

// "&name" or "&name;" at the start of `text`: the longest known name that begins it.
Piece name_reference(std::u32string_view text) {
  constexpr size_t kLongest = 32;
  size_t end = 1;
  while (end < text.size() && end <= kLongest && !ends_name(text[end])) ++end;
  if (end == 1) return {};
  std::u32string_view name = text.substr(1, end - 1);
  if (end < text.size() && text[end] == U';') name = text.substr(1, end);
  std::string ascii;
  for (char32_t c : name) ascii += c < 0x80 ? static_cast<char>(c) : '\x7F';
  if (auto whole = named(ascii)) return {1 + name.size(), *whole};
  for (size_t length = name.size(); --length > 1;) {
    if (auto part = named(std::string_view(ascii).substr(0, length))) return {1 + length, *part};
  }
  return {};
}

bool is_alnum(char32_t c) {
  return (c >= U'0' && c <= U'9') || (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
}

std::optional<std::u32string> careful_reference(std::u32string_view reference) {
  const std::string ascii(reference.begin() + 1, reference.end());
  if (ascii[0] == '#') {
    const std::u32string text = html_unescape(reference);
    return text.find(U';') == text.npos ? std::optional(text) : std::nullopt;
  }
  if (auto text = named(ascii)) return text;
  const std::string lower = ascii_lower(ascii);
  const bool all_capitals =
      std::none_of(ascii.begin(), ascii.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  const auto text = named(lower);
  if (!all_capitals || !text || html_unescape(reference) != reference) return std::nullopt;
  return to_upper(*text);
}

}  // namespace

std::u32string html_unescape(std::u32string_view text) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    Piece piece;
    if (text[at] == U'&' && at + 1 < text.size()) {
      const std::u32string_view rest = text.substr(at);
      piece = rest[1] == U'#' ? number_reference(rest) : name_reference(rest);
    }
    if (piece.length == 0)
      result += text[at++];
    else
      result += piece.text;
    at += piece.length;
  }
  return result;
}

std::u32string html_unescape_careful(std::u32string_view text) {
  constexpr size_t kLongest = 24;
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == U'&') {
      if (end < text.size() && text[end] == U'#') ++end;
      const size_t first = end;
      while (end < text.size() && end - first < kLongest && is_alnum(text[end])) ++end;
      const bool closed = end > first && end < text.size() && text[end] == U';';
      const auto known = closed ? careful_reference(text.substr(at, end + 1 - at)) : std::nullopt;
      if (known) {
        result += *known;
        at = end + 1;
        continue;
      }
    }
    result += text[at++];
  }
  return result;
}

}  // namespace wam::data
