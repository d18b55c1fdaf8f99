// Code points: UTF-8 both ways, and the few properties that text cleaning asks for (by utf8proc).
#pragma once

#include <string>
#include <string_view>

namespace wam::data {

// `text` must be valid UTF-8 (wam::is_valid_utf8).
std::u32string decode_utf8(std::string_view text);
// `text` must hold no surrogates and nothing past U+10FFFF.
std::string encode_utf8(std::u32string_view text);

// Unicode White_Space.
bool is_space(char32_t c);
// Normalisation forms.
std::u32string to_nfc(std::u32string_view text);
std::u32string to_nfkc(std::u32string_view text);

// Python's str.lower(): full mappings and the final sigma.
std::u32string to_lower(std::u32string_view text);
// Python's str.upper() for the characters that named references stand for.
std::u32string to_upper(std::u32string_view text);

}  // namespace wam::data
