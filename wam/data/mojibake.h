// UTF-8 that somebody decoded as Latin-1 or Windows-1252, put right.
#pragma once

#include <string>
#include <string_view>

namespace wam::data {

// Repairs the whole text if all of it re-reads as UTF-8, else the runs that do; repeats until
// nothing changes. Text without such runs comes back as it is.
std::u32string fix_mojibake(std::u32string text);

// C1 controls (U+0080..U+009F) as the Windows-1252 characters of those bytes.
std::u32string fix_c1_controls(std::u32string_view text);

}  // namespace wam::data
