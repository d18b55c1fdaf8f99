// Text from outside (tensor names, keys, file contents) made fit for a one-line message.
#pragma once

#include <string>
#include <string_view>

namespace wam {

// 'text' in single quotes; bytes outside printable ASCII, quotes and backslashes as \xNN, \' and
// \\; longer than `max_chars` source bytes it is cut and "..." stands before the closing quote.
std::string quote(std::string_view text, size_t max_chars = 120);

// True if `text` is well-formed UTF-8 (no overlong forms, surrogates or values past U+10FFFF).
bool is_valid_utf8(std::string_view text);

}  // namespace wam
