// For tests: small LeRobot datasets made on the spot, and edits that spoil them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "wam/data/parquet_writer.h"

namespace wam::data {

struct TestDatasetOptions {
  std::string version = "v2.1";
  std::vector<int64_t> lengths = {12, 9, 15};  // rows of episodes 0, 1, ...
  double fps = 10;
  int height = 48, width = 64;
  std::vector<std::string> cameras = {"observation.images.top", "observation.images.wrist"};
  bool images_in_parquet = false;
  bool has_modality = true;
  bool has_stats = true;
  int64_t episodes_per_file = 2;  // v3.0 only
};

// Everything: meta, data, videos. Episode e, camera c shows test_picture(100 e + 1000 c + frame).
void write_test_dataset(const std::filesystem::path& root, const TestDatasetOptions& options = {});
// Reads all columns of a parquet file (meta/episodes of v3.0, or a table), lets `edit` change them,
// and writes them back as one row group.
void edit_parquet(const std::filesystem::path& path,
                  const std::function<void(std::vector<ParquetColumnData>&)>& edit);
std::filesystem::path test_v3_episodes_path(const std::filesystem::path& root);
// The columns of one episode as write_test_dataset writes them.
std::vector<ParquetColumnData> test_columns(const TestDatasetOptions& options, int64_t episode);
HostTensor& find_numbers(std::vector<ParquetColumnData>& columns, const std::string& name);

std::filesystem::path test_table_path(const std::filesystem::path& root, int64_t episode);
std::filesystem::path test_video_path(const std::filesystem::path& root, int64_t episode,
                                      const std::string& camera);
// Reads a JSON file, lets `edit` change it, writes it back.
void edit_json(const std::filesystem::path& path, const std::function<void(nlohmann::json&)>& edit);
void write_text(const std::filesystem::path& path, const std::string& text);
// Writes an episode's table again after `edit`.
void edit_table(const std::filesystem::path& root, const TestDatasetOptions& options,
                int64_t episode, const std::function<void(std::vector<ParquetColumnData>&)>& edit);

}  // namespace wam::data
