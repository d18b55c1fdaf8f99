// Checkpoints of a run: <run>/checkpoints/step_00000120/. A folder with that name is complete: it was
// written under a temporary name, flushed, and renamed. What a killed process leaves is swept away.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace wam::train {

class CheckpointStore {
 public:
  // Creates the folder. `keep_last` >= 1.
  CheckpointStore(std::filesystem::path run_dir, int64_t keep_last);

  struct Entry {
    int64_t step = 0;
    std::filesystem::path path;
  };
  std::vector<Entry> list() const;  // ascending by step
  std::optional<Entry> latest() const;

  // Calls `write` with an empty temporary folder, then makes it the checkpoint of `step` and removes
  // all but the newest `keep_last`. If `write` throws, nothing is left and older checkpoints stay.
  Entry save(int64_t step, const std::function<void(const std::filesystem::path&)>& write);

  // The folder that save() gives to `write`: for ranks that write into it beside the one that saves.
  std::filesystem::path temporary(int64_t step) const;

 private:
  void remove_leftovers() const;
  void prune() const;
  std::filesystem::path folder_;
  int64_t keep_last_;
};

}  // namespace wam::train
