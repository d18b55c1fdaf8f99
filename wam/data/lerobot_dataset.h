// A LeRobot dataset of any version, from its meta: everything but where the rows lie.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/lerobot_info.h"
#include "wam/data/lerobot_layout.h"

namespace wam::data {

// What a version's meta folder says.
struct LerobotMeta {
  std::vector<Episode> episodes;  // ascending by index, discarded ones too
  std::map<int64_t, std::string> tasks;
  std::unique_ptr<EpisodeLayout> layout;
};

// Reads modality.json; statistics when first asked for. Leaves out the episodes that info.json
// discards. Throws DataError when none remain.
std::unique_ptr<Dataset> make_lerobot_dataset(const std::filesystem::path& root, LerobotInfo info,
                                              LerobotMeta meta);

}  // namespace wam::data
