// Robots of the public datasets. Sentences, keys, sizes and strides are constants of the trained
// checkpoints (dreamzero0/dreamzero, RLinf/RLinf): a changed word is another input to the model.
#include <array>

#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/data/embodiment.h"

namespace wam::data {
namespace {

constexpr const char* kTwoViewPrompt =
    "A multi-view video shows that a robot {i} The video is split into two horizontal views: the "
    "left view shows the exterior camera and the right view shows the wrist camera. The robot {i}";

constexpr const char* kDroidPrompt =
    "A multi-view video shows that a robot {i} The video is split into three views: The top view "
    "shows the camera view from the robot's wrist, the bottom-left view shows the camera view from "
    "the left exterior camera, and the bottom-right view shows the camera view from the right "
    "exterior camera. During training, one of the two bottom exterior views may be a black screen "
    "(dropped view). The robot {i}";

constexpr const char* kAgibotPrompt =
    "A multi-view video shows that a robot {i} The video is split into four views: The top-left "
    "view shows the camera view from the robot's head, the top-right view shows the camera view "
    "from the right hand, the bottom-left view shows the camera view from the left hand, and the "
    "bottom-right view is a black screen (inactive view). The robot {i}";

constexpr const char* kTablePrompt =
    "A two-view video shows a robot arm above a table that {i} The left view shows the overview "
    "camera and the right view shows the gripper camera. The robot {i}";

constexpr const char* kDefaultInstruction = "Perform the default behavior.";

std::vector<SliceSpec> slices(std::initializer_list<const char*> keys) {
  std::vector<SliceSpec> result;
  for (const char* key : keys) result.push_back({.key = key});
  return result;
}

std::vector<int64_t> eight_frames(int64_t micro_stride) {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < 8; ++i) offsets.push_back(i * micro_stride);
  return offsets;
}

Embodiment libero_sim() {
  Embodiment e;
  e.tag = "libero_sim";
  e.id = 21;
  e.views = {"image", "wrist_image"};
  e.picture = {.view_height = 256, .view_width = 256};
  e.tiling = Tiling::kSideBySide;
  e.prompt_template = kTwoViewPrompt;
  e.state = slices({"state"});
  e.action = slices({"actions"});
  e.action_horizon = 16;
  e.macro_stride = 16;
  e.video_in_chunk_offsets = eight_frames(2);
  return e;
}

// RLinf's frame set: the offsets of a 24-row block at a stride of 16, so that neighbouring blocks'
// frames interleave, and its fixed demand that row anchor + 23 exists.
Embodiment libero_sim_rlinf() {
  Embodiment e = libero_sim();
  e.video_in_chunk_offsets = eight_frames(3);
  e.min_anchor_extent = 23;
  return e;
}

// The horizon equals the stride: RLinf drops repeated action rows, so that its windows exist only
// while blocks' actions do not overlap.
Embodiment franka_pnp() {
  Embodiment e = libero_sim();
  e.tag = "franka_pnp";
  e.picture = {.view_height = 176, .view_width = 320};
  e.action_horizon = 12;
  e.macro_stride = 12;
  e.video_in_chunk_offsets = eight_frames(1);
  return e;
}

Embodiment oxe_droid() {
  Embodiment e;
  e.tag = "oxe_droid";
  e.id = 17;
  e.views = {"exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"};
  e.picture = {.view_height = 176, .view_width = 320};
  e.tiling = Tiling::kWristOnTop;
  e.prompt_template = kDroidPrompt;
  e.state = slices({"joint_position", "gripper_position"});
  e.action = slices({"joint_position", "gripper_position"});
  e.relative_action_keys = {"joint_position"};
  e.action_horizon = 24;
  e.macro_stride = 24;
  e.video_in_chunk_offsets = eight_frames(3);
  e.language_keys = {"language.language_instruction", "language.language_instruction_2",
                     "language.language_instruction_3"};
  e.default_instruction = kDefaultInstruction;
  return e;
}

Embodiment oxe_droid_5b() {
  Embodiment e = oxe_droid();
  e.picture = {.view_height = 160, .view_width = 320};
  return e;
}

Embodiment agibot() {
  Embodiment e = oxe_droid();
  e.tag = "agibot";
  e.id = 26;
  e.views = {"top_head", "hand_left", "hand_right"};
  e.tiling = Tiling::kGrid;
  e.prompt_template = kAgibotPrompt;
  e.state = slices({"left_arm_joint_position", "right_arm_joint_position", "left_effector_position",
                    "right_effector_position", "head_position", "waist_position"});
  e.action =
      slices({"left_arm_joint_position", "right_arm_joint_position", "left_effector_position",
              "right_effector_position", "head_position", "waist_position", "robot_velocity"});
  e.relative_action_keys = {};
  e.language_keys = {"language.action_text"};
  return e;
}

// The built-in world of wam/sim.
Embodiment sim_table() {
  Embodiment e;
  e.tag = "sim_table";
  e.id = 21;
  e.views = {"overview", "gripper"};
  // A crop would move the table under the robot, and instructions name colours.
  e.picture = {.view_height = 32, .view_width = 32, .crop_scale = 1, .jitter = {0, 0, 0, 0}};
  e.tiling = Tiling::kSideBySide;
  e.prompt_template = kTablePrompt;
  e.state = slices({"arm", "gripper"});
  e.action = slices({"arm", "gripper"});
  e.action_horizon = 8;
  e.macro_stride = 8;
  e.video_in_chunk_offsets = eight_frames(1);
  return e;
}

struct Preset {
  const char* name;
  Embodiment (*make)();
};

constexpr std::array<Preset, 7> kPresets = {{
    {"agibot", agibot},
    {"franka_pnp", franka_pnp},
    {"libero_sim", libero_sim},
    {"libero_sim_rlinf", libero_sim_rlinf},
    {"oxe_droid", oxe_droid},
    {"oxe_droid_5b", oxe_droid_5b},
    {"sim_table", sim_table},
}};

}  // namespace

std::vector<std::string> embodiment_preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.push_back(preset.name);
  return names;
}

Embodiment embodiment_preset(const std::string& preset) {
  for (const Preset& candidate : kPresets) {
    if (preset == candidate.name) return candidate.make();
  }
  throw ConfigError({.where = "embodiment.preset",
                     .what = "unknown preset",
                     .got = preset,
                     .expected = "a built-in robot",
                     .remedy = name_hint(preset, embodiment_preset_names())});
}

}  // namespace wam::data
