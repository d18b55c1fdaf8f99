// Text and bytes as they may stand in an HTML page.
#pragma once

#include <string>
#include <string_view>

namespace wam::train {

// Safe between tags and in quoted attributes. What is not UTF-8, or a control character, is shown
// by its \xNN form.
std::string escape_html(std::string_view text);

std::string base64(std::string_view bytes);

// Seven significant digits at most, without trailing zeros; "nan", "inf", "-inf".
std::string format_number(double value);

}  // namespace wam::train
