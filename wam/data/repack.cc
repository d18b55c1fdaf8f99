#include "wam/data/repack.h"

#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/data/image_codec.h"
#include "wam/data/json_fields.h"
#include "wam/data/lerobot_info.h"
#include "wam/data/lerobot_v2.h"
#include "wam/data/parquet_writer.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBatch = 32;  // pictures decoded at once

class ImageRepacker {
 public:
  ImageRepacker(const Dataset& source, const fs::path& target, const RepackOptions& options)
      : source_(source), target_(target), options_(options), reader_(source.make_frame_reader()) {
    // Cameras in use: those the modality names, whose videos must exist.
    for (const auto& [key, column] : source.modality().video) {
      const Feature* feature = source.find_feature(column);
      if (feature != nullptr && feature->is_camera()) cameras_.insert(column);
    }
  }

  void run() {
    copy_meta();
    const LerobotInfo info = read_lerobot_info(target_);
    for (const Episode& episode : source_.episodes()) {
      const fs::path path = table_path(target_, info, episode.index);
      fs::create_directories(path.parent_path());
      write_parquet(path, columns(episode));
    }
  }

 private:
  void copy_meta() {
    fs::create_directories(target_ / "meta");
    for (const auto& entry : fs::directory_iterator(source_.root() / "meta")) {
      if (entry.path().filename() == "info.json") continue;
      fs::copy(entry.path(), target_ / "meta" / entry.path().filename());
    }
    const fs::path path = source_.root() / "meta" / "info.json";
    Json info = read_json_object(path);
    for (const Feature& feature : source_.features()) {
      if (!feature.is_camera()) continue;
      Json& features = info["features"];
      if (!cameras_.contains(feature.key)) {
        features.erase(feature.key);
        continue;
      }
      features[feature.key]["dtype"] = "image";
      features[feature.key].erase("info");
      features[feature.key].erase("video_info");
    }
    info["total_videos"] = 0;
    write_file_atomic(target_ / "meta" / "info.json", info.dump(4));
  }

  std::vector<ParquetColumnData> columns(const Episode& episode) {
    EpisodeTable table = source_.read_table(episode);
    std::vector<ParquetColumnData> columns;
    for (auto& [name, numbers] : table.numeric) {
      columns.push_back({name, as_stored(name, numbers)});
    }
    for (auto& [name, text] : table.text) columns.push_back({name, std::move(text)});
    for (const std::string& camera : cameras_) columns.push_back({camera, images(episode, camera)});
    return columns;
  }

  // Back to the column's own type; scalars as scalars.
  HostTensor as_stored(const std::string& name, const HostTensor& numbers) const {
    const Feature* feature = source_.find_feature(name);
    const std::string dtype = feature == nullptr ? "float64" : feature->dtype;
    HostTensor stored = numbers;
    if (dtype == "float32") stored = numbers.to(DType::kF32);
    if (dtype == "int64") stored = numbers.to(DType::kI64);
    if (dtype == "bool") stored = numbers.to(DType::kBool);
    const bool is_scalar = stored.shape()[1] == 1;
    return is_scalar ? stored.reshaped({stored.shape()[0]}) : stored;
  }

  ParquetImages images(const Episode& episode, const std::string& camera) {
    ParquetImages images;
    for (int64_t first = 0; first < episode.length; first += kBatch) {
      std::vector<int64_t> rows(static_cast<size_t>(std::min(kBatch, episode.length - first)));
      std::iota(rows.begin(), rows.end(), first);
      const HostTensor frames = reader_->read(episode, camera, rows);
      const int64_t height = frames.shape()[1], width = frames.shape()[2];
      const auto size = static_cast<size_t>(height * width * 3);
      for (size_t i = 0; i < rows.size(); ++i) {
        const std::span<const uint8_t> rgb = frames.as<uint8_t>().subspan(i * size, size);
        const std::vector<std::byte> bytes =
            options_.as_jpeg ? encode_jpeg(rgb, height, width, options_.jpeg_quality)
                             : encode_png(rgb, height, width, options_.png_compression);
        images.push_back({.bytes = {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
      }
    }
    return images;
  }

  const Dataset& source_;
  fs::path target_;
  RepackOptions options_;
  std::unique_ptr<FrameReader> reader_;
  std::set<std::string> cameras_;
};

}  // namespace

void require_new_folder(const fs::path& target) {
  if (!fs::exists(target) || (fs::is_directory(target) && fs::is_empty(target))) return;
  throw DataError(
      {.where = target.string(), .what = "folder is not empty", .remedy = "Name a new folder."});
}

void repack_with_images(const Dataset& source, const fs::path& target,
                        const RepackOptions& options) {
  require_new_folder(target);
  if (source.version() == "v3.0") {
    throw DataError({.where = source.root().string(),
                     .what = "pictures of a v3.0 dataset cannot be repacked",
                     .remedy = "Repack one of v2.0 or v2.1, and make v3.0 of the result."});
  }
  ImageRepacker(source, target, options).run();
}

}  // namespace wam::data
