// wam data diff A B: what differs between two datasets: schema, episodes, tasks, statistics, and on
// demand every number and picture.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"
#include "wam/cli/data_commands.h"
#include "wam/cli/progress.h"
#include "wam/data/dataset.h"

namespace wam::cli {
namespace {

constexpr int kExitDifferent = 1;
// Statistics that differ by more than this share of the number's deviation, or of itself.
constexpr double kStatSlack = 1e-6;
constexpr int64_t kBatch = 32;  // pictures compared at once

struct DiffArgs {
  std::filesystem::path a, b;
  bool values = false, pictures = false;
};

class Difference {
 public:
  Difference(const data::Dataset& a, const data::Dataset& b) : a_(a), b_(b) {}

  void compare_meta();
  void compare_values(bool with_pictures);
  int64_t count() const { return count_; }

 private:
  void say(const std::string& what, const std::string& a, const std::string& b) {
    ++count_;
    fmt::print("{}: {} | {}\n", what, a, b);
  }
  void compare(const std::string& what, const std::string& a, const std::string& b) {
    if (a != b) say(what, a, b);
  }
  void compare_features();
  void compare_slices(const char* group, const std::vector<data::ModalitySlice>& a,
                      const std::vector<data::ModalitySlice>& b);
  void compare_names(const std::string& what, const std::map<std::string, std::string>& a,
                     const std::map<std::string, std::string>& b);
  void compare_episodes();
  void compare_stats();
  void compare_tables(const data::Episode& a, const data::Episode& b);
  void try_pictures(const data::Episode& a, const data::Episode& b, const std::string& camera);
  void compare_pictures(const data::Episode& a, const data::Episode& b, const std::string& camera);
  std::vector<std::pair<const data::Episode*, const data::Episode*>> common_episodes() const;

  const data::Dataset& a_;
  const data::Dataset& b_;
  std::unique_ptr<data::FrameReader> a_reader_, b_reader_;
  int64_t count_ = 0;
};

std::string feature_text(const data::Feature& f) {
  std::string text = fmt::format("{} [{}]", f.dtype, fmt::join(f.shape, ","));
  if (f.is_camera() && !f.codec.empty()) text += " " + f.codec;
  return text;
}

void Difference::compare_features() {
  for (const data::Feature& feature : a_.features()) {
    const data::Feature* other = b_.find_feature(feature.key);
    compare("feature " + feature.key, feature_text(feature),
            other == nullptr ? "(none)" : feature_text(*other));
  }
  for (const data::Feature& feature : b_.features()) {
    if (a_.find_feature(feature.key) == nullptr) {
      say("feature " + feature.key, "(none)", feature_text(feature));
    }
  }
}

void Difference::compare_names(const std::string& what, const std::map<std::string, std::string>& a,
                               const std::map<std::string, std::string>& b) {
  for (const auto& [key, value] : a) {
    const auto found = b.find(key);
    compare(what + key, value, found == b.end() ? "(none)" : found->second);
  }
  for (const auto& [key, value] : b) {
    if (!a.contains(key)) say(what + key, "(none)", value);
  }
}

void Difference::compare_slices(const char* group, const std::vector<data::ModalitySlice>& a,
                                const std::vector<data::ModalitySlice>& b) {
  const auto named = [](const std::vector<data::ModalitySlice>& slices) {
    std::map<std::string, std::string> texts;
    for (const data::ModalitySlice& s : slices) {
      texts[s.key] =
          fmt::format("{}[{}:{}]{}", s.original_key, s.begin, s.end, s.absolute ? "" : " relative");
    }
    return texts;
  };
  compare_names(std::string("key ") + group + ".", named(a), named(b));
}

std::vector<std::pair<const data::Episode*, const data::Episode*>> Difference::common_episodes()
    const {
  std::vector<std::pair<const data::Episode*, const data::Episode*>> common;
  const auto& others = b_.episodes();
  for (const data::Episode& episode : a_.episodes()) {
    const auto found = std::ranges::lower_bound(others, episode.index, {}, &data::Episode::index);
    if (found != others.end() && found->index == episode.index)
      common.emplace_back(&episode, &*found);
  }
  return common;
}

void Difference::compare_episodes() {
  int64_t rows_a = 0, rows_b = 0;
  for (const data::Episode& episode : a_.episodes()) rows_a += episode.length;
  for (const data::Episode& episode : b_.episodes()) rows_b += episode.length;
  compare("episodes", std::to_string(a_.episodes().size()), std::to_string(b_.episodes().size()));
  compare("rows", std::to_string(rows_a), std::to_string(rows_b));
  const auto common = common_episodes();
  const auto only = [&](size_t size, const char* name) {
    if (size != common.size()) fmt::print("  {} only in {}\n", size - common.size(), name);
  };
  only(a_.episodes().size(), "the first");
  only(b_.episodes().size(), "the second");
  for (const auto& [a, b] : common) {
    const std::string name = "episode " + std::to_string(a->index);
    compare(name + " rows", std::to_string(a->length), std::to_string(b->length));
    compare(name + " tasks", join(a->tasks, "; "), join(b->tasks, "; "));
  }
}

void Difference::compare_stats() {
  for (const auto& [column, table] : a_.stats()) {
    const auto other = b_.stats().find(column);
    if (other == b_.stats().end()) {
      say("statistics of " + column, "there", "(none)");
      continue;
    }
    for (const auto& [name, values] : table) {
      const auto found = other->second.find(name);
      if (found == other->second.end() || found->second.size() != values.size()) {
        say("statistics of " + column + " " + name, fmt::format("{} values", values.size()),
            found == other->second.end() ? "(none)"
                                         : fmt::format("{} values", found->second.size()));
        continue;
      }
      const auto std_of = table.find("std");
      for (size_t i = 0; i < values.size(); ++i) {
        const bool has_std = std_of != table.end() && i < std_of->second.size();
        const double scale = std::max(std::abs(values[i]), has_std ? std_of->second[i] : 0.0);
        if (std::abs(values[i] - found->second[i]) <= kStatSlack * scale) continue;
        say(fmt::format("statistics of {}[{}] {}", column, i, name),
            fmt::format("{:.6g}", values[i]), fmt::format("{:.6g}", found->second[i]));
      }
    }
  }
  for (const auto& [column, table] : b_.stats()) {
    if (!a_.stats().contains(column)) say("statistics of " + column, "(none)", "there");
  }
}

void Difference::compare_meta() {
  compare("version", a_.version(), b_.version());
  compare("robot", a_.robot_type(), b_.robot_type());
  compare("frames/s", fmt::format("{:g}", a_.fps()), fmt::format("{:g}", b_.fps()));
  compare_features();
  compare_slices("state", a_.modality().state, b_.modality().state);
  compare_slices("action", a_.modality().action, b_.modality().action);
  compare_names("key video.", a_.modality().video, b_.modality().video);
  compare_names("key annotation.", a_.modality().annotation, b_.modality().annotation);
  std::map<std::string, std::string> tasks_a, tasks_b;
  for (const auto& [index, text] : a_.tasks()) tasks_a[std::to_string(index)] = text;
  for (const auto& [index, text] : b_.tasks()) tasks_b[std::to_string(index)] = text;
  compare_names("task ", tasks_a, tasks_b);
  compare_episodes();
  compare_stats();
}

// The first row of a column whose values are not the same bits; -1 if there is none.
int64_t first_difference(const HostTensor& a, const HostTensor& b) {
  const auto x = a.as<double>(), y = b.as<double>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::memcmp(&x[i], &y[i], sizeof(double)) != 0)
      return static_cast<int64_t>(i) / a.shape()[1];
  }
  return -1;
}

void Difference::compare_tables(const data::Episode& a, const data::Episode& b) {
  const data::EpisodeTable x = a_.read_table(a), y = b_.read_table(b);
  const std::string name = "episode " + std::to_string(a.index) + ", column ";
  for (const auto& [column, values] : x.numeric) {
    const auto other = y.numeric.find(column);
    if (other == y.numeric.end() || other->second.shape() != values.shape()) {
      say(name + quote(column), values.shape().to_string(),
          other == y.numeric.end() ? "(none)" : other->second.shape().to_string());
      continue;
    }
    const int64_t row = first_difference(values, other->second);
    if (row >= 0)
      say(name + quote(column), fmt::format("row {}", row), "other numbers from there on");
  }
  for (const auto& [column, texts] : x.text) {
    const auto other = y.text.find(column);
    if (other == y.text.end() || other->second != texts) {
      say(name + quote(column), "texts", other == y.text.end() ? "(none)" : "other texts");
    }
  }
}

void Difference::compare_pictures(const data::Episode& a, const data::Episode& b,
                                  const std::string& camera) {
  for (int64_t first = 0; first < a.length; first += kBatch) {
    std::vector<int64_t> rows(static_cast<size_t>(std::min(kBatch, a.length - first)));
    std::iota(rows.begin(), rows.end(), first);
    const HostTensor x = a_reader_->read(a, camera, rows), y = b_reader_->read(b, camera, rows);
    const auto p = x.as<uint8_t>(), q = y.as<uint8_t>();
    if (p.size() == q.size() && std::equal(p.begin(), p.end(), q.begin())) continue;
    say(fmt::format("episode {}, camera {}", a.index, quote(camera)),
        fmt::format("rows {} to {}", first, rows.back()), "other pictures");
    return;
  }
}

// A camera that neither dataset can give is no difference.
void Difference::try_pictures(const data::Episode& a, const data::Episode& b,
                              const std::string& camera) {
  const auto fault_of = [&](const data::Episode& episode,
                            data::FrameReader& reader) -> std::string {
    try {
      reader.read(episode, camera, std::array<int64_t, 1>{0});
      return "";
    } catch (const DataError& error) {
      return error.what();
    }
  };
  const std::string fault_a = fault_of(a, *a_reader_), fault_b = fault_of(b, *b_reader_);
  const std::string name = fmt::format("episode {}, camera {}", a.index, quote(camera));
  if (fault_a.empty() && fault_b.empty()) return compare_pictures(a, b, camera);
  if (fault_a.empty() || fault_b.empty()) {
    return say(name, fault_a.empty() ? "pictures" : fault_a,
               fault_b.empty() ? "pictures" : fault_b);
  }
  fmt::print("  {}: not compared, neither can be read\n", name);
}

void Difference::compare_values(bool with_pictures) {
  a_reader_ = a_.make_frame_reader();
  b_reader_ = b_.make_frame_reader();
  const auto common = common_episodes();
  ProgressLine line("comparing", "episodes");
  int64_t done = 0;
  for (const auto& [a, b] : common) {
    if (a->length == b->length) {
      compare_tables(*a, *b);
      for (const data::Feature& feature : a_.features()) {
        const data::Feature* other = b_.find_feature(feature.key);
        const bool is_shared = feature.is_camera() && other != nullptr && other->is_camera();
        if (with_pictures && is_shared) try_pictures(*a, *b, feature.key);
      }
    }
    line.update(++done, std::ssize(common));
  }
}

int run_diff(const DiffArgs& args) {
  const auto a = data::open_dataset(args.a), b = data::open_dataset(args.b);
  fmt::print("first: {} | second: {}\n", args.a.string(), args.b.string());
  Difference difference(*a, *b);
  difference.compare_meta();
  if (args.values || args.pictures) difference.compare_values(args.pictures);
  if (difference.count() == 0) fmt::print("no differences\n");
  return difference.count() == 0 ? 0 : kExitDifferent;
}

}  // namespace

void add_data_diff(CLI::App& data, int& exit_code) {
  auto args = std::make_shared<DiffArgs>();
  CLI::App* command = data.add_subcommand(
      "diff", "What differs between two datasets of any version; exit code 1 if something does");
  command->add_option("a", args->a, "folder of a LeRobot dataset")->required();
  command->add_option("b", args->b, "folder of another")->required();
  command->add_flag("--values", args->values,
                    "compare every number and text of the tables as well");
  command->add_flag("--pictures", args->pictures, "and every picture, by its bits");
  command->callback([args, &exit_code] { exit_code = run_diff(*args); });
}

}  // namespace wam::cli
