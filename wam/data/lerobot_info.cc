#include "wam/data/lerobot_info.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/coded_error.h"
#include "wam/data/json_fields.h"

namespace wam::data {
namespace {

// A robot's row: far above any real one, and it keeps products of shapes below 2^63.
constexpr int64_t kMaxWidth = int64_t{1} << 24;

[[noreturn]] void fail(const std::string& where, const std::string& what, const std::string& got,
                       const std::string& expected) {
  throw DataError({.where = where,
                   .what = what,
                   .got = got,
                   .expected = expected,
                   .remedy = "Correct meta/info.json."});
}

// A list, {"motors": [...]} of older tools, or nothing.
std::vector<std::string> read_names(const Json& feature, const std::string& where) {
  const auto found = feature.find("names");
  if (found == feature.end() || found->is_null()) return {};
  if (found->is_array()) return json_strings(*found, where + ".names");
  std::vector<std::string> names;
  if (!found->is_object()) fail(where + ".names", "names are not a list", found->dump(), "a list");
  for (const auto& [axis, list] : found->items()) {
    if (!list.is_array()) continue;
    const std::vector<std::string> part = json_strings(list, where + ".names." + axis);
    names.insert(names.end(), part.begin(), part.end());
  }
  return names;
}

void read_camera(const Json& feature, const std::string& where, Feature& out) {
  for (const char* key : {"info", "video_info"}) {
    const auto found = feature.find(key);
    if (found == feature.end() || !found->is_object()) continue;
    out.codec = json_string(*found, "video.codec", where, out.codec);
    out.pixel_format = json_string(*found, "video.pix_fmt", where, out.pixel_format);
    if (found->contains("video.fps")) out.fps = json_number(*found, "video.fps", where);
    out.is_depth_map = json_bool(*found, "video.is_depth_map", where, out.is_depth_map) ||
                       json_bool(*found, "is_depth_map", where, false);
  }
}

Feature read_feature(const std::string& key, const Json& json, const std::string& info_path) {
  const std::string where = info_path + ": features." + quote(key);
  if (key.empty() || key.find('/') != std::string::npos || key == "." || key == "..") {
    fail(where, "feature name cannot be used", quote(key), "a name without '/'");
  }
  if (!json.is_object()) fail(where, "feature is not an object", json.dump(), "{...}");
  Feature feature{.key = key, .dtype = json_string(json, "dtype", where)};
  feature.shape = json_ints(json_member(json, "shape", where), where + ".shape");
  int64_t width = 1;
  for (const int64_t size : feature.shape) {
    if (size < 1 || size > kMaxWidth / width) {
      fail(where, "shape out of bounds", json.at("shape").dump(), "sizes of 1 and more");
    }
    width *= size;
  }
  feature.names = read_names(json, where);
  read_camera(json, where, feature);
  return feature;
}

std::string known_version(const Json& json, const std::string& where) {
  const std::string version = json_string(json, "codebase_version", where);
  if (is_supported_version(version)) return version;
  throw CodedError("version-unknown",
                   {.where = where,
                    .what = "LeRobot version is not read by this program",
                    .got = quote(version),
                    .expected = "v2.0, v2.1 or v3.0",
                    .remedy = "Convert the dataset with LeRobot's own scripts."});
}

// Position of a name in names, or -1.
int64_t find_name(const std::vector<std::string>& names, const char* name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : found - names.begin();
}

// Which dimensions of a picture's shape are height and width.
struct PictureAxes {
  size_t height = 0, width = 1;
};

PictureAxes picture_axes(const Feature& feature) {
  if (feature.shape.size() != 3) {
    throw DataError({.where = "feature " + quote(feature.key),
                     .what = "shape is not that of a picture",
                     .got = std::to_string(feature.shape.size()) + " dimensions",
                     .expected = "height, width, channels",
                     .remedy = "Correct meta/info.json, or name another camera."});
  }
  const int64_t height = find_name(feature.names, "height");
  const int64_t width = find_name(feature.names, "width");
  if (height >= 0 && width >= 0 && height < 3 && width < 3) {
    return {static_cast<size_t>(height), static_cast<size_t>(width)};
  }
  const bool channels_first = feature.shape[0] <= 4 && feature.shape[2] > 4;
  return channels_first ? PictureAxes{1, 2} : PictureAxes{0, 1};
}

}  // namespace

int64_t Feature::width() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}
int64_t Feature::picture_height() const { return shape[picture_axes(*this).height]; }
int64_t Feature::picture_width() const { return shape[picture_axes(*this).width]; }

bool is_supported_version(const std::string& version) {
  return version == "v2.0" || version == "v2.1" || version == "v3.0";
}

void require_video_path(const LerobotInfo& info, const std::filesystem::path& root,
                        const std::string& camera) {
  if (!info.video_path.empty()) return;
  throw DataError({.where = (root / "meta/info.json").string(),
                   .what = "there is no video_path although a camera is a video",
                   .got = camera,
                   .remedy = "Add the template to meta/info.json."});
}

const Feature* LerobotInfo::find_feature(const std::string& key) const {
  const auto found = std::find_if(features.begin(), features.end(),
                                  [&](const Feature& feature) { return feature.key == key; });
  return found == features.end() ? nullptr : &*found;
}

LerobotInfo read_lerobot_info(const std::filesystem::path& root) {
  const std::filesystem::path path = root / "meta" / "info.json";
  const std::string where = path.string();
  std::error_code ignored;
  if (!std::filesystem::is_directory(root, ignored)) {
    throw DataError({.where = root.string(),
                     .what = "dataset folder is missing",
                     .expected = "a folder with meta/info.json",
                     .remedy = "Check the path of the dataset."});
  }
  if (!std::filesystem::exists(path, ignored)) {
    throw DataError({.where = root.string(),
                     .what = "not a LeRobot dataset: meta/info.json is missing",
                     .remedy = "Give the folder that holds meta, data and videos."});
  }
  const Json json = read_json_object(path);
  LerobotInfo info;
  info.version = known_version(json, where);
  info.robot_type = json_string(json, "robot_type", where, "");
  info.fps = json_number(json, "fps", where);
  if (!(info.fps > 0) || info.fps > 10000) {
    fail(where + ": fps", "frame rate out of bounds", std::to_string(info.fps), "above 0");
  }
  info.chunks_size = json_int(json, "chunks_size", where, info.chunks_size);
  if (info.chunks_size < 1) {
    fail(where + ": chunks_size", "out of bounds", std::to_string(info.chunks_size), "1 or more");
  }
  info.total_episodes = json_int(json, "total_episodes", where, -1);
  info.total_frames = json_int(json, "total_frames", where, -1);
  info.total_tasks = json_int(json, "total_tasks", where, -1);
  info.total_videos = json_int(json, "total_videos", where, -1);
  info.data_path = PathTemplate(json_string(json, "data_path", where), where + ": data_path");
  const std::string video_path = json_string(json, "video_path", where, "");
  if (!video_path.empty()) info.video_path = PathTemplate(video_path, where + ": video_path");
  const Json& features = json_member(json, "features", where);
  if (!features.is_object()) fail(where + ": features", "not an object", features.dump(), "{...}");
  for (const auto& [key, feature] : features.items()) {
    info.features.push_back(read_feature(key, feature, where));
  }
  const auto discarded = json.find("discarded_episode_indices");
  if (discarded != json.end() && !discarded->is_null()) {
    info.discarded_episodes = json_ints(*discarded, where + ": discarded_episode_indices");
  }
  return info;
}

}  // namespace wam::data
