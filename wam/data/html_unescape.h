// Character references of HTML turned into characters.
#pragma once

#include <string>
#include <string_view>

namespace wam::data {

// Python's html.unescape: the HTML 5 rules, names without semicolon and wrong numbers included.
std::u32string html_unescape(std::u32string_view text);

// The careful form: only references that end in a semicolon; names in all capitals, where they
// are no reference themselves, give the capital letter.
std::u32string html_unescape_careful(std::u32string_view text);

}  // namespace wam::data
