// Statistics in the public layouts of metadata.json and relative_stats_dreamzero.json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "wam/data/stats.h"

namespace wam::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

// One list, or one list a step where every step has its own statistics.
OrderedJson values_json(const std::vector<double>& values, int64_t width) {
  if (std::ssize(values) == width) return values;
  OrderedJson rows = OrderedJson::array();
  for (auto row = values.begin(); row != values.end(); row += width) {
    rows.push_back(std::vector<double>(row, row + width));
  }
  return rows;
}

OrderedJson keys_json(const std::map<std::string, KeyStats>& keys) {
  OrderedJson result = OrderedJson::object();
  for (const auto& [key, stats] : keys) {
    for (const auto& [name, values] : stats.values) {
      result[key][name] = values_json(values, stats.width);
    }
  }
  return result;
}

const ModalitySlice* find(const std::vector<ModalitySlice>& slices, const std::string& key) {
  const auto found = std::find_if(slices.begin(), slices.end(),
                                  [&](const ModalitySlice& slice) { return slice.key == key; });
  return found == slices.end() ? nullptr : &*found;
}

OrderedJson shapes_json(const std::map<std::string, KeyStats>& keys,
                        const std::vector<ModalitySlice>& slices,
                        const std::vector<std::string>& relative) {
  OrderedJson result = OrderedJson::object();
  for (const auto& [key, stats] : keys) {
    const ModalitySlice* slice = find(slices, key);
    const bool is_relative = std::find(relative.begin(), relative.end(), key) != relative.end();
    OrderedJson& entry = result[key];
    entry["absolute"] = !is_relative && (slice == nullptr || slice->absolute);
    entry["rotation_type"] = slice == nullptr || slice->rotation_type.empty()
                                 ? OrderedJson(nullptr)
                                 : OrderedJson(slice->rotation_type);
    entry["shape"] = {stats.width};
    entry["continuous"] = true;
  }
  return result;
}

OrderedJson video_json(const Dataset& dataset) {
  OrderedJson result = OrderedJson::object();
  for (const auto& [key, column] : dataset.modality().video) {
    const Feature* feature = dataset.find_feature(column);
    if (feature == nullptr || !feature->is_camera()) continue;
    result[key]["resolution"] = {feature->picture_width(), feature->picture_height()};
    result[key]["channels"] = 3;
    result[key]["fps"] = dataset.fps();
  }
  return result;
}

}  // namespace

std::string dataset_metadata_json(const Dataset& dataset, const std::string& tag,
                                  const NormStats& stats,
                                  const std::vector<std::string>& relative) {
  OrderedJson json;
  OrderedJson& entry = json[tag];
  entry["statistics"]["state"] = keys_json(stats.state);
  entry["statistics"]["action"] = keys_json(stats.action);
  entry["modalities"]["video"] = video_json(dataset);
  entry["modalities"]["state"] = shapes_json(stats.state, dataset.modality().state, {});
  entry["modalities"]["action"] = shapes_json(stats.action, dataset.modality().action, relative);
  entry["embodiment_tag"] = tag;
  return json.dump(2) + "\n";
}

std::string relative_stats_json(const std::map<std::string, KeyStats>& stats) {
  return keys_json(stats).dump(4) + "\n";
}

}  // namespace wam::data
