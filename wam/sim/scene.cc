#include "wam/sim/scene.h"

#include "wam/base/check.h"

namespace wam::sim {

std::string to_string(BlockColor color) {
  static constexpr std::array<const char*, kMaxBlocks> kNames = {"red", "green", "blue", "yellow"};
  return kNames.at(static_cast<size_t>(color));
}

std::string to_string(Pad pad) { return pad == Pad::kLeft ? "left" : "right"; }

std::string instruction_text(Task task, int paraphrase) {
  WAM_CHECK(paraphrase >= 0 && paraphrase < kNumParaphrases) << paraphrase;
  const std::string block = "the " + to_string(task.color) + " block";
  const std::string pad = "the " + to_string(task.pad) + " pad";
  if (paraphrase == 0) return "put " + block + " on " + pad;
  if (paraphrase == 1) return "move " + block + " to " + pad;
  return "pick up " + block + " and place it on " + pad;
}

}  // namespace wam::sim
