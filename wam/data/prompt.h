// From a dataset's instruction to the sentence that the text encoder reads.
#pragma once

#include <string>
#include <string_view>

namespace wam::data {

// The instruction (a Python literal's text, see python_literal.h) in lower case, put in place of
// every "{i}" of the template, cleaned (text_clean.h). Throws DataError if it is not UTF-8.
std::string make_prompt(std::string_view prompt_template, std::string_view instruction);

// The prompt of unconditional prediction (guidance): a constant of the trained checkpoints.
std::string negative_prompt();

// True if nothing but white space would be left of the instruction.
bool is_blank_instruction(std::string_view instruction);

}  // namespace wam::data
