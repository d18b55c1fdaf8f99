#include "wam/data/prompt.h"

#include "wam/base/strings.h"
#include "wam/data/python_literal.h"
#include "wam/data/text_clean.h"

namespace wam::data {

std::string make_prompt(std::string_view prompt_template, std::string_view instruction) {
  static constexpr std::string_view kPlace = "{i}";
  const std::string lower = lower_case(literal_instruction(instruction));
  std::string prompt;
  while (!prompt_template.empty()) {
    const size_t place = prompt_template.find(kPlace);
    prompt += prompt_template.substr(0, place);
    if (place == prompt_template.npos) break;
    prompt += lower;
    prompt_template.remove_prefix(place + kPlace.size());
  }
  return clean_prompt(prompt);
}

std::string negative_prompt() {
  return clean_prompt(
      "Vibrant colors, overexposed, static, blurry details, text, subtitles, style, artwork, "
      "painting, image, still, grayscale, dull, worst quality, low quality, JPEG artifacts, ugly, "
      "mutilated, extra fingers, bad hands, bad face, deformed, disfigured, mutated limbs, fused "
      "fingers, stagnant image, cluttered background, three legs, many people in the background, "
      "walking backwards.");
}

bool is_blank_instruction(std::string_view instruction) {
  return trim(instruction).empty() || trim(literal_instruction(instruction)).empty();
}

}  // namespace wam::data
