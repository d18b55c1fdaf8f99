// A robot as the data pipeline sees it: cameras and how they are tiled, which state and action
// numbers to use, how they are normalised, how windows are cut, and the sentence around the
// instruction. Everything a new robot needs is here and comes from YAML: no code change.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace YAML {
class Node;
}

namespace wam::data {

// How the views of one moment become one picture; see tiling.h for the layouts.
enum class Tiling { kSingle, kSideBySide, kWristOnTop, kGrid };

// How a number of the robot becomes one of the model; see normalize.h for the formulas.
enum class NormMode { kQ99, kMinMax, kMeanStd, kBinary, kNone };

// Dims [begin, end) of a slice; end < 0 means up to its last.
struct IndexRange {
  int64_t begin = 0, end = -1;
  bool operator==(const IndexRange&) const = default;
};

// One entry of the state or action vector: a slice of meta/modality.json (or a whole column) by
// key, or a part of it.
struct SliceSpec {
  std::string key;     // also the name under which its statistics are kept
  std::string column;  // if set: ranges are of this column and modality.json is not asked
  std::vector<IndexRange> ranges;  // in the order used; empty: all
  NormMode mode = NormMode::kQ99;
  bool per_horizon = false;  // actions: statistics must have a row for each row of a block
};

// Largest relative changes of the colour jitter; 0 leaves that part out.
struct JitterOptions {
  double brightness = 0.3, contrast = 0.4, saturation = 0.5, hue = 0.08;
  bool any() const { return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }
};

struct PictureOptions {
  int64_t view_height = 0, view_width = 0;  // of one view, after crop and resize
  double crop_scale = 0.95;                 // crop is int(scale * h) x int(scale * w); 1: none
  JitterOptions jitter;
};

struct Embodiment {
  std::string tag;  // key in metadata.json
  int64_t id = 0;
  std::vector<std::string> views;  // video keys, in tiling order
  PictureOptions picture;
  Tiling tiling = Tiling::kSingle;
  std::string prompt_template;  // every {i} becomes the instruction
  std::vector<SliceSpec> state, action;
  std::vector<std::string> relative_action_keys;  // action keys made relative to the same state key
  bool has_real_action = true;  // false: video only; actions are zero and masked from the loss

  int64_t action_horizon = 0;                   // A, actions per block
  int64_t macro_stride = 0;                     // M, rows from one block's anchor to the next
  std::vector<int64_t> video_in_chunk_offsets;  // O, rows of a block's 8 frames after its anchor
  int64_t min_anchor_extent = 0;  // an anchor also needs row anchor + this; 0: the others decide

  std::vector<std::string>
      language_keys;                // annotation keys, one drawn per sample; empty: task_index
  std::string default_instruction;  // for dropped or empty instructions; empty: an error
  double language_dropout = 0;      // probability of default_instruction in training

  int64_t tiled_height() const;
  int64_t tiled_width() const;
};

// Names used in YAML and messages: "side_by_side", "q99" and so on.
std::string_view name(Tiling tiling);
std::string_view name(NormMode mode);

// Checks ranges and agreement of the fields; throws ConfigError naming the field as "embodiment.x".
void validate(const Embodiment& embodiment);

// Built-in robots: agibot, franka_pnp, libero_sim, libero_sim_rlinf, oxe_droid, oxe_droid_5b,
// sim_table. embodiment_presets.cc says where their numbers come from.
std::vector<std::string> embodiment_preset_names();
// Throws ConfigError with the nearest valid name.
Embodiment embodiment_preset(const std::string& preset);

// A scalar names a preset; a map may start from one (key `preset`) and override fields. Unknown or
// repeated keys, wrong types and values out of range are ConfigErrors. The result is validated.
Embodiment parse_embodiment(const YAML::Node& node);
// Every field as YAML that parse_embodiment reads back to the same embodiment.
std::string to_yaml(const Embodiment& embodiment);

// "key", "key[2]", "key[0:3,5:]", with an optional "state."/"action." in front.
SliceSpec parse_slice(std::string_view text, std::string_view modality, const std::string& where);

}  // namespace wam::data
