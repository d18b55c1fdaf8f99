#include "wam/data/embodiment.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "wam/base/error.h"

namespace wam::data {
namespace {

// The message of the ConfigError that reading `text` throws.
std::string error_of(const std::string& text) {
  try {
    parse_embodiment(YAML::Load(text));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

constexpr const char* kMinimal = R"(
embodiment_tag: arm
views: [video.front]
view_height: 96
view_width: 128
prompt_template: "A robot {i}"
state: [state.joints]
action: ["joints[0:6]", {key: gripper, indices: "0", normalization: binary}]
action_horizon: 16
)";

TEST(Embodiment, PresetsAreValid) {
  for (const std::string& name : embodiment_preset_names()) {
    EXPECT_NO_THROW(validate(embodiment_preset(name))) << name;
  }
}

TEST(Embodiment, PresetsSurviveYaml) {
  for (const std::string& name : embodiment_preset_names()) {
    const std::string text = to_yaml(embodiment_preset(name));
    EXPECT_EQ(to_yaml(parse_embodiment(YAML::Load(text))), text) << name;
  }
}

TEST(Embodiment, TiledSizes) {
  const Embodiment droid = embodiment_preset("oxe_droid_5b");
  EXPECT_EQ(droid.tiled_height(), 320);
  EXPECT_EQ(droid.tiled_width(), 640);
  const Embodiment libero = embodiment_preset("libero_sim");
  EXPECT_EQ(libero.tiled_height(), 256);
  EXPECT_EQ(libero.tiled_width(), 512);
}

TEST(Embodiment, MinimalYamlFillsTheWindow) {
  const Embodiment e = parse_embodiment(YAML::Load(kMinimal));
  EXPECT_EQ(e.views, std::vector<std::string>{"front"});
  EXPECT_EQ(e.macro_stride, 16);
  EXPECT_EQ(e.video_in_chunk_offsets, (std::vector<int64_t>{0, 2, 4, 6, 8, 10, 12, 14}));
  EXPECT_EQ(e.tiling, Tiling::kSingle);
  ASSERT_EQ(e.action.size(), 2u);
  EXPECT_EQ(e.action[0].ranges, (std::vector<IndexRange>{{0, 6}}));
  EXPECT_EQ(e.action[1].ranges, (std::vector<IndexRange>{{0, 1}}));
  EXPECT_EQ(e.action[1].mode, NormMode::kBinary);
  EXPECT_EQ(e.state[0].key, "joints");
}

TEST(Embodiment, ScalarNamesAPreset) {
  EXPECT_EQ(parse_embodiment(YAML::Load("oxe_droid")).id, 17);
  EXPECT_TRUE(has(error_of("oxe_driod"), "'oxe_droid'"));
}

TEST(Embodiment, MapOverridesItsPreset) {
  const Embodiment e =
      parse_embodiment(YAML::Load("{preset: libero_sim, view_height: 64, color_jitter: false}"));
  EXPECT_EQ(e.picture.view_height, 64);
  EXPECT_EQ(e.picture.view_width, 256);
  EXPECT_FALSE(e.picture.jitter.any());
  EXPECT_EQ(e.tag, "libero_sim");
}

TEST(Embodiment, SliceText) {
  const SliceSpec slice = parse_slice(" action.arm[3, 0:2,5:] ", "action", "x");
  EXPECT_EQ(slice.key, "arm");
  EXPECT_EQ(slice.ranges, (std::vector<IndexRange>{{3, 4}, {0, 2}, {5, -1}}));
  EXPECT_TRUE(parse_slice("arm", "action", "x").ranges.empty());
  for (const char* bad :
       {"", "[0]", "a[", "a[]", "a[-1]", "a[0:2", "a[x]", "a[1,]", "a[99999999999999999999]"}) {
    EXPECT_THROW(parse_slice(bad, "action", "x"), ConfigError) << bad;
  }
}

TEST(EmbodimentErrors, UnknownKeyGetsTheNearestName) {
  const std::string error = error_of(std::string(kMinimal) + "action_horison: 8\n");
  EXPECT_TRUE(has(error, "unknown key")) << error;
  EXPECT_TRUE(has(error, "'action_horizon'")) << error;
  EXPECT_TRUE(has(error, "line 10")) << error;
}

TEST(EmbodimentErrors, EachSaysTheRule) {
  const auto with = [](const std::string& line) { return error_of(kMinimal + line + "\n"); };
  EXPECT_TRUE(has(with("action_horizon: 8"), "twice"));
  EXPECT_TRUE(has(with("tiling: grid"), "grid_2x2"));
  EXPECT_TRUE(has(with("tiling: side_by_side"), "number of views"));
  EXPECT_TRUE(has(with("crop_scale: 1.5"), "0.05 to 1"));
  EXPECT_TRUE(has(with("crop_scale: .nan"), "0.05 to 1"));
  EXPECT_TRUE(has(with("crop_scale: [1]"), "a number"));
  EXPECT_TRUE(has(with("macro_stride: 12"), "multiple of 8"));
  EXPECT_TRUE(has(with("video_in_chunk_offsets: [0, 1, 2]"), "8 ascending rows"));
  EXPECT_TRUE(has(with("video_in_chunk_offsets: [0, 1, 2, 2, 3, 4, 5, 6]"), "8 ascending rows"));
  EXPECT_TRUE(has(with("language_dropout: 0.1"), "default_instruction"));
  EXPECT_TRUE(has(with("relative_action_keys: [joint]"), "'joints'"));
  EXPECT_TRUE(has(with("relative_action_keys: [gripper]"), "no state slice"));
  EXPECT_TRUE(has(with("has_real_action: false"), "said not to be real"));
  EXPECT_TRUE(has(with("color_jitter: {hue: 0.6}"), "0 to 0.5"));
  EXPECT_TRUE(has(with("color_jitter: {hues: 0.1}"), "'hue'"));
  EXPECT_TRUE(has(with("embodiment_id: twenty"), "an integer"));
}

TEST(EmbodimentErrors, TemplateNeedsAPlaceForTheInstruction) {
  EXPECT_TRUE(has(error_of("{preset: libero_sim, prompt_template: no place}"), "{i}"));
}

TEST(EmbodimentErrors, NotAMap) { EXPECT_TRUE(has(error_of("[1, 2]"), "a map")); }

}  // namespace
}  // namespace wam::data
