// Instructions in datasets are now and then the text of a Python value, "['pick up the cup']".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wam::data {

// What Python's ast.literal_eval and str() make of an instruction: the first element of a list or
// tuple, the text of any other literal, the text itself if it is no literal. Dicts, sets and byte
// strings keep their source text; complex numbers and comments are not recognised. Throws
// DataError for an empty list or tuple.
std::string literal_instruction(std::string_view text);

}  // namespace wam::data
