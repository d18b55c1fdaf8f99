#include "wam/data/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "wam/base/check.h"

namespace wam::data {
namespace {

struct FreeDeleter {
  void operator()(utf8proc_uint8_t* p) const { std::free(p); }
};

std::u32string normalized(std::u32string_view text, int options) {
  const std::string utf8 = encode_utf8(text);
  utf8proc_uint8_t* raw = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(utf8.data()),
                   static_cast<utf8proc_ssize_t>(utf8.size()), &raw,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
  const std::unique_ptr<utf8proc_uint8_t, FreeDeleter> owner(raw);
  WAM_CHECK(length >= 0) << utf8proc_errmsg(length);
  return decode_utf8({reinterpret_cast<const char*>(raw), static_cast<size_t>(length)});
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_cased(char32_t c) {
  const utf8proc_category_t k = category(c);
  const bool ordinal = c == 0xAA || c == 0xBA;
  return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
         ordinal;
}

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  // Punctuation that stands inside words.
  static constexpr std::u32string_view kInsideWords =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  return kInsideWords.find(c) != kInsideWords.npos;
}

// The sigma at `at` ends a word: a cased letter before it, none after.
bool is_final_sigma(std::u32string_view text, size_t at) {
  size_t before = at, after = at + 1;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  const bool cased_before = before > 0 && is_cased(text[before - 1]);
  const bool cased_after = after < text.size() && is_cased(text[after]);
  return cased_before && !cased_after;
}

std::u32string upper_of(char32_t c) {
  switch (c) {
    case 0xDF:
      return U"SS";
    case 0x149:
      return U"\u02BCN";
    case 0xFB00:
      return U"FF";
    case 0xFB01:
      return U"FI";
    case 0xFB02:
      return U"FL";
    case 0xFB03:
      return U"FFI";
    case 0xFB04:
      return U"FFL";
    default:
      return {static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)))};
  }
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  for (utf8proc_ssize_t at = 0; at < size;) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t used = utf8proc_iterate(bytes + at, size - at, &code);
    WAM_CHECK(used > 0) << "text is not UTF-8";
    result.push_back(static_cast<char32_t>(code));
    at += used;
  }
  return result;
}

std::string encode_utf8(std::u32string_view text) {
  std::string result;
  result.reserve(text.size());
  for (char32_t c : text) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t used = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
    WAM_CHECK(used > 0) << "not a code point: " << static_cast<uint32_t>(c);
    result.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(used));
  }
  return result;
}

bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::u32string to_nfc(std::u32string_view text) { return normalized(text, UTF8PROC_COMPOSE); }

std::u32string to_nfkc(std::u32string_view text) {
  return normalized(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
}

std::u32string to_lower(std::u32string_view text) {
  constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2, kDottedI = 0x130;
  std::u32string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (c == kDottedI) {
      result += U"i\u0307";
    } else if (c == kSigma && is_final_sigma(text, i)) {
      result += kFinalSigma;
    } else {
      result += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
    }
  }
  return result;
}

std::u32string to_upper(std::u32string_view text) {
  std::u32string result;
  for (char32_t c : text) result += upper_of(c);
  return result;
}

}  // namespace wam::data
