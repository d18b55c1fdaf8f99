// Finds an embodiment's keys in a dataset: which column and which of its dims a state or action
// slice means, which feature a view is, where an instruction is written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/embodiment.h"

namespace wam::data {

// Dims [begin, end) of a column hold the key; `dims` are those the embodiment uses, counted from
// the key's first, in order.
struct FoundSlice {
  std::string key, column;
  int64_t begin = 0, end = 0;
  std::vector<int64_t> dims;
  int64_t width() const { return end - begin; }
};

// Dims that `ranges` select of a key of `width` dims; all of them if there are no ranges. Throws
// ConfigError at `where` if a range leaves the key.
std::vector<int64_t> selected_dims(const std::vector<IndexRange>& ranges, int64_t width,
                                   const std::string& where);

// Looks for a modality.json entry of that key, then for a numeric column of that name. `modality`
// is "state" or "action". Throws DataError listing the nearest or all keys.
FoundSlice find_slice(const Dataset& dataset, const std::string& modality, const SliceSpec& slice);

// The camera feature of a view: modality.json's, "observation.images.KEY", KEY itself, or the only
// picture feature that ends in ".KEY".
std::string find_camera(const Dataset& dataset, const std::string& view);

// The column of a language key: modality.json's, "annotation.KEY", or KEY itself.
std::string find_language_column(const Dataset& dataset, const std::string& key);

}  // namespace wam::data
