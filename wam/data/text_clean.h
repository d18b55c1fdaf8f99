// Cleaning of prompts as the reference does before tokenising: ftfy.fix_text with its defaults,
// html.unescape twice, white space collapsed.
//
// Of ftfy (6.x) this does, to a fixed point, line by line:
//   - HTML references that end in a semicolon, unless a "<" has been seen;
//   - UTF-8 that was read as Latin-1 or Windows-1252, over a whole line or in runs, where a run is
//     known by the letters such text is full of (A-circumflex, A-tilde, a-circumflex, eth) or by
//     several sequences on end; ftfy weighs such runs by a longer list of unlikely letter pairs;
//   - C1 controls as Windows-1252; Latin ligatures and digraphs apart; full and half width forms to
//     the usual ones; curly quotes straight; line breaks to \n; terminal escapes and control
//     characters removed; NFC.
// It does not do: text misread through other code pages (1250, 1251, 1253, 1254, 1257, Mac Roman,
// 437), UTF-8 whose no-break space was turned into a space or whose bytes were lost, CESU-8.
// Plain ASCII, which instructions nearly always are, is treated exactly as ftfy treats it.
#pragma once

#include <string>
#include <string_view>

namespace wam::data {

// These throw DataError if `text` is not UTF-8.
std::string fix_text(std::string_view text);
std::string clean_prompt(std::string_view text);
std::string lower_case(std::string_view text);

// Runs of white space become one space; none at either end.
std::u32string collapse_whitespace(std::u32string_view text);

}  // namespace wam::data
