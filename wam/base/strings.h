// Small text helpers for messages and configs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wam {

// Pieces between separators; "" gives one empty piece, "a," gives "a" and "".
std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);
// Without leading and trailing ASCII white space.
std::string_view trim(std::string_view text);
// ASCII lower case; other bytes as they are.
std::string ascii_lower(std::string_view text);
bool is_ascii(std::string_view text);

// "17 B", "1.50 KiB", "2.00 GiB": binary units, three significant digits.
std::string format_bytes(int64_t bytes);

// Edit distance with neighbouring swaps counted as one edit.
int64_t edit_distance(std::string_view a, std::string_view b);
// The candidate closest to `name` by edit distance, ignoring case; the first of equals. Empty if
// there are no candidates. What the message about an unknown key offers.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);
// "Did you mean 'x'?" for the nearest name, or "Valid: a, b, c." when nothing is near; "" if none.
std::string name_hint(std::string_view name, std::span<const std::string> candidates);

}  // namespace wam
