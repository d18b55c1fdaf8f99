#include "wam/data/embodiment_guess.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"
#include "wam/data/normalize.h"

namespace wam::data {
namespace {

// Blocks of the published robots last so long: 16 rows at 10 Hz, 24 at 15 Hz.
constexpr double kBlockSeconds = 1.6;
constexpr int64_t kFramesPerBlock = 8;
// Short side of a view: libero's size.
constexpr int64_t kShortSide = 256;
constexpr int64_t kDefaultStateDim = 64, kDefaultActionDim = 32;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool has_word(const std::string& text, std::initializer_list<const char*> words) {
  const std::string small = lower(text);
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return small.find(word) != std::string::npos; });
}

class Guesser {
 public:
  Guesser(const Dataset& dataset, const GuessOptions& options)
      : dataset_(dataset), options_(options) {}

  EmbodimentGuess run() {
    guess_tag();
    if (options_.read_data) read_first_table();
    guess_views();
    guess_picture();
    guess_numbers();
    guess_relative();
    guess_window();
    guess_language();
    guess_prompt();
    validate(e_);
    return {std::move(e_), std::move(notes_)};
  }

 private:
  void note(const std::string& text) { notes_.push_back(text); }

  void guess_tag() {
    std::string name = dataset_.robot_type();
    const bool is_said = !name.empty() && name != "unknown";
    if (!is_said) {
      std::error_code ignored;
      name = std::filesystem::weakly_canonical(dataset_.root(), ignored).filename().string();
    }
    for (const char c : lower(name)) {
      e_.tag += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    }
    if (e_.tag.empty()) e_.tag = "robot";
    note(fmt::format("embodiment_tag: {}, from {}", e_.tag,
                     is_said ? "info.json's robot_type" : "the folder's name"));
    note("embodiment_id: 0; give robots that share a model different numbers");
  }

  void read_first_table() {
    try {
      table_ = dataset_.read_table(dataset_.episodes().front());
    } catch (const DataError& error) {
      note(
          std::string("the first episode's table could not be read, so the meta alone was used: ") +
          error.what());
    }
  }

  // Whether a picture can be had; the meta of real datasets lists cameras that do not exist.
  bool shows(FrameReader& reader, const std::string& camera) const {
    try {
      const std::array<int64_t, 1> rows = {0};
      reader.read(dataset_.episodes().front(), camera, rows);
      return true;
    } catch (const DataError&) {
      return false;
    }
  }

  void guess_views() {
    std::vector<std::string> views, absent, depth;
    for (const auto& [key, column] : dataset_.modality().video) {
      const Feature* feature = dataset_.find_feature(column);
      if (feature == nullptr || !feature->is_camera()) continue;
      (feature->is_depth_map ? depth : views).push_back(key);
    }
    if (!depth.empty()) note("left out, as depth maps: " + join(depth, ", "));
    if (options_.read_data) {
      const auto reader = dataset_.make_frame_reader();
      const auto gone = [&](const std::string& view) {
        return !shows(*reader, dataset_.modality().video.at(view));
      };
      std::copy_if(views.begin(), views.end(), std::back_inserter(absent), gone);
      if (absent.size() < views.size()) {
        std::erase_if(views, [&](const std::string& view) {
          return std::find(absent.begin(), absent.end(), view) != absent.end();
        });
        if (!absent.empty()) {
          note("left out, as no picture of the first episode can be read: " + join(absent, ", "));
        }
      } else if (!absent.empty()) {
        note("no camera's pictures could be read, so all that the meta lists were taken");
      }
    }
    if (views.empty()) {
      throw DataError({.where = dataset_.root().string(),
                       .what = "no camera to look through",
                       .expected = "a video or image feature",
                       .remedy = "Add one to meta/info.json or meta/modality.json."});
    }
    leave_out_other_sizes(views);
    arrange(views);
  }

  // One crop serves all views of a moment, so they must be of one size: the most frequent.
  void leave_out_other_sizes(std::vector<std::string>& views) {
    std::map<std::pair<int64_t, int64_t>, int64_t> counts;
    const auto size_of = [&](const std::string& view) {
      return std::pair(camera(view).picture_height(), camera(view).picture_width());
    };
    for (const std::string& view : views) ++counts[size_of(view)];
    const auto common =
        std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
    std::erase_if(views, [&](const std::string& view) {
      if (size_of(view) == common) return false;
      note(fmt::format(
          "left out: view {} is {} x {}, the others {} x {}, and views of a moment must "
          "have one size",
          view, size_of(view).first, size_of(view).second, common.first, common.second));
      return true;
    });
  }

  // The hand's camera comes last: it is the third of a tiling of three, and on the right of two.
  void arrange(std::vector<std::string> views) {
    std::stable_partition(views.begin(), views.end(), [](const std::string& view) {
      return !has_word(view, {"wrist", "hand", "gripper"});
    });
    if (views.size() > 3) {
      note(fmt::format("views: of {} cameras the first three are taken; left out: {}", views.size(),
                       join(std::span(views).subspan(3), ", ")));
      views.resize(3);
    }
    const bool has_wrist = has_word(views.back(), {"wrist", "hand", "gripper"});
    e_.tiling = views.size() == 1   ? Tiling::kSingle
                : views.size() == 2 ? Tiling::kSideBySide
                : has_wrist         ? Tiling::kWristOnTop
                                    : Tiling::kGrid;
    e_.views = std::move(views);
    note(fmt::format("views: {}, in this order, tiled {}", join(e_.views, ", "), name(e_.tiling)));
  }

  const Feature& camera(const std::string& view) const {
    return *dataset_.find_feature(dataset_.modality().video.at(view));
  }

  // The tiled picture's sides become multiples of 32: an even number of the autoencoder's cells.
  void guess_picture() {
    const Feature& first = camera(e_.views[0]);
    const int64_t height = first.picture_height(), width = first.picture_width();
    const double scale = std::min(
        1.0, static_cast<double>(kShortSide) / static_cast<double>(std::min(height, width)));
    const bool two_rows = e_.tiling == Tiling::kWristOnTop || e_.tiling == Tiling::kGrid;
    const bool two_columns = e_.tiling != Tiling::kSingle;
    const auto side = [&](int64_t pixels, bool doubled) {
      const double step = doubled ? 16 : 32;
      const double cells = std::round(static_cast<double>(pixels) * scale / step);
      return static_cast<int64_t>(std::max(1.0, cells) * step);
    };
    e_.picture.view_height = side(height, two_rows);
    e_.picture.view_width = side(width, two_columns);
    note(
        fmt::format("view_height, view_width: {} x {} of the camera's {} x {}, so that the tiled "
                    "picture is a multiple of 32",
                    e_.picture.view_height, e_.picture.view_width, height, width));
    note(
        "crop_scale 0.95 and color_jitter as published; turn them off where place or colour "
        "matters");
  }

  bool has_statistics(const std::string& column, const SliceSpec& slice) const {
    const auto found = dataset_.stats().find(column);
    if (found == dataset_.stats().end()) return false;
    const std::vector<std::string> needed = needed_statistics(slice.mode);
    return std::all_of(needed.begin(), needed.end(),
                       [&](const std::string& name) { return found->second.contains(name); });
  }

  // Every value of the first episode is 0 or 1, and both occur.
  bool is_switch(const ModalitySlice& slice) const {
    const auto column = table_.numeric.find(slice.original_key);
    if (column == table_.numeric.end()) return false;
    const int64_t width = column->second.shape()[1];
    std::set<double> seen;
    for (int64_t row = 0; row < table_.num_rows; ++row) {
      for (int64_t d = slice.begin; d < std::min(slice.end, width); ++d) {
        seen.insert(column->second.as<double>()[static_cast<size_t>(row * width + d)]);
        if (seen.size() > 2) return false;
      }
    }
    return seen == std::set<double>{0, 1};
  }

  std::vector<SliceSpec> slices(const std::vector<ModalitySlice>& entries, const char* modality) {
    std::vector<SliceSpec> result;
    std::vector<std::string> switches, rotations, unlisted, bare;
    int64_t width = 0;
    for (const ModalitySlice& entry : entries) {
      const Feature* feature = dataset_.find_feature(entry.original_key);
      if (feature == nullptr) {
        unlisted.push_back(entry.key);
        continue;
      }
      SliceSpec slice{.key = entry.key, .column = {}, .ranges = {}};
      if (is_switch(entry)) {
        slice.mode = NormMode::kBinary;
        switches.push_back(entry.key);
      }
      if (!entry.rotation_type.empty())
        rotations.push_back(entry.key + " (" + entry.rotation_type + ")");
      if (!has_statistics(entry.original_key, slice)) bare.push_back(entry.key);
      width += entry.end - entry.begin;
      result.push_back(std::move(slice));
    }
    const std::string what = modality;
    if (!result.empty()) {
      note(fmt::format("{}: every slice the dataset names, {} numbers, normalised by q01 and q99",
                       what, width));
    }
    if (!switches.empty()) note(what + ": binary, as only 0 and 1 occur: " + join(switches, ", "));
    if (!rotations.empty()) {
      note(what + ": rotations are taken number by number: " + join(rotations, ", "));
    }
    if (!unlisted.empty()) {
      note(what + ": left out, as meta/info.json lists no such column: " + join(unlisted, ", "));
    }
    if (!bare.empty()) {
      note(what + ": no q01 and q99 in the dataset's meta for " + join(bare, ", ") +
           "; run `wam stats` with this file and name its metadata.json in dataset.statistics");
    }
    const int64_t most = what == "state" ? kDefaultStateDim : kDefaultActionDim;
    if (width > most) {
      note(
          fmt::format("{0}: {1} numbers are more than model.{0}_dim's {2}; raise it, or name fewer",
                      what, width, most));
    }
    return result;
  }

  void guess_numbers() {
    e_.state = slices(dataset_.modality().state, "state");
    e_.action = slices(dataset_.modality().action, "action");
    if (!e_.action.empty()) return;
    e_.has_real_action = false;
    note("has_real_action: false, as no column is named like an action; name some under action");
  }

  static int64_t width_of(const std::vector<ModalitySlice>& entries, const std::string& key) {
    for (const ModalitySlice& entry : entries) {
      if (entry.key == key) return entry.end - entry.begin;
    }
    return 0;
  }

  void guess_relative() {
    for (const auto& [key, stats] : dataset_.relative_stats()) {
      const int64_t width = width_of(dataset_.modality().action, key);
      if (width > 0 && width == width_of(dataset_.modality().state, key)) {
        e_.relative_action_keys.push_back(key);
      }
    }
    if (e_.relative_action_keys.empty()) {
      note(
          "relative_action_keys: none; name joints whose actions are targets in the state's units");
    } else {
      note("relative_action_keys: " + join(e_.relative_action_keys, ", ") +
           ", which the dataset has relative statistics of");
    }
  }

  void guess_window() {
    std::vector<int64_t> lengths;
    for (const Episode& episode : dataset_.episodes()) lengths.push_back(episode.length);
    std::nth_element(lengths.begin(), lengths.begin() + std::ssize(lengths) / 2, lengths.end());
    const int64_t median = lengths[lengths.size() / 2];
    const auto eighths = [](double rows) {
      return std::max<int64_t>(1, std::llround(rows / kFramesPerBlock)) * kFramesPerBlock;
    };
    const int64_t wanted = eighths(kBlockSeconds * dataset_.fps());
    int64_t horizon = wanted;
    while (horizon > kFramesPerBlock && options_.num_blocks * horizon >= median) {
      horizon -= kFramesPerBlock;
    }
    e_.action_horizon = e_.macro_stride = horizon;
    for (int64_t i = 0; i < kFramesPerBlock; ++i) {
      e_.video_in_chunk_offsets.push_back(i * horizon / kFramesPerBlock);
    }
    note(fmt::format("action_horizon, macro_stride: {} rows, {:.3g} s at {:g} rows a second{}",
                     horizon, static_cast<double>(horizon) / dataset_.fps(), dataset_.fps(),
                     horizon == wanted
                         ? ""
                         : fmt::format("; fewer than {:.2g} s, so that {} blocks fit an "
                                       "episode of {} rows",
                                       kBlockSeconds, options_.num_blocks, median)));
  }

  void guess_language() {
    for (const auto& [key, column] : dataset_.modality().annotation) {
      const Feature* feature = dataset_.find_feature(column);
      const bool speaks = has_word(key, {"task", "language", "instruction", "description"}) &&
                          !has_word(key, {"valid"});
      if (feature == nullptr || feature->is_camera() || !speaks) continue;
      if (column == "task_index") {
        note("language_keys: none needed: annotation " + key + " is the task of task_index");
        return;
      }
      e_.language_keys.push_back(key);
    }
    if (!e_.language_keys.empty()) {
      note("language_keys: " + join(e_.language_keys, ", ") +
           ", one of them drawn for each sample");
      return;
    }
    const auto& tasks = dataset_.tasks();
    const bool is_blank = std::all_of(tasks.begin(), tasks.end(),
                                      [](const auto& task) { return trim(task.second).empty(); });
    if (!is_blank) {
      note("language_keys: none; the instruction is the task of task_index");
      return;
    }
    e_.default_instruction = "do the task";
    note(
        "default_instruction: \"do the task\", as the dataset has no instructions; write a better "
        "one");
  }

  void guess_prompt() {
    const std::vector<std::string>& v = e_.views;
    const auto shows = [](const std::string& place, const std::string& view) {
      std::string words = view;
      for (char& c : words) c = c == '_' || c == '.' ? ' ' : c;
      return "the " + place + " view shows the " + words + " camera";
    };
    std::string text = "A video shows that a robot {i}";
    if (v.size() > 1) text = "A multi-view video shows that a robot {i} The video is split into ";
    if (v.size() == 2) {
      text += "two horizontal views: " + shows("left", v[0]) + " and " + shows("right", v[1]);
    } else if (v.size() == 3 && e_.tiling == Tiling::kWristOnTop) {
      text += "three views: " + shows("top", v[2]) + ", " + shows("bottom-left", v[0]) + ", and " +
              shows("bottom-right", v[1]);
    } else if (v.size() == 3) {
      text += "three views: " + shows("top-left", v[0]) + ", " + shows("bottom-left", v[1]) +
              ", and " + shows("top-right", v[2]);
    }
    if (v.size() > 1) text += ". The robot {i}";
    e_.prompt_template = text;
    note("prompt_template: made of the views' names; a trained model's must be kept word by word");
  }

  const Dataset& dataset_;
  GuessOptions options_;
  EpisodeTable table_;  // of the first episode; empty if it cannot be read
  Embodiment e_;
  std::vector<std::string> notes_;
};

}  // namespace

EmbodimentGuess guess_embodiment(const Dataset& dataset, const GuessOptions& options) {
  return Guesser(dataset, options).run();
}

std::string guess_file(const EmbodimentGuess& guess, const std::string& dataset) {
  std::string text = "# A first version for " + quote(dataset) +
                     ", by `wam embodiment init`. What was guessed, to be checked:\n";
  for (const std::string& note : guess.notes) {
    std::string line = note;
    for (char& c : line) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    text += "#   " + line + "\n";
  }
  text += "embodiment:\n";
  for (const std::string& line : split(to_yaml(guess.embodiment), '\n')) {
    if (!line.empty()) text += "  " + line + "\n";
  }
  return text;
}

}  // namespace wam::data
