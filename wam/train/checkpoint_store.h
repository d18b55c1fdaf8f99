// Checkpoints of a run: <run>/checkpoints/step_00000120/. A folder with that name is complete: it was
// written under a temporary name, flushed, and renamed. What a killed process leaves is swept away.
// best.json names the one with the lowest validation loss, if the run keeps it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace wam::train {

struct KeepRule {
  int64_t last = 1;   // the newest, at least 1
  int64_t every = 0;  // and all whose step is a multiple; 0: none
};

class CheckpointStore {
 public:
  // Creates the folder.
  CheckpointStore(std::filesystem::path run_dir, KeepRule keep);

  struct Entry {
    int64_t step = 0;
    std::filesystem::path path;
  };
  std::vector<Entry> list() const;  // ascending by step
  std::optional<Entry> latest() const;

  struct Best {
    int64_t step = 0;
    double loss = 0;
  };
  // As last marked; nothing if its checkpoint is gone. DataError if best.json is damaged.
  std::optional<Best> best() const;

  // Throws DataError if the disk has no room for `bytes` more and `reserve` beside them.
  void demand_room(int64_t bytes, int64_t reserve) const;

  // Calls `write` with an empty temporary folder, then makes it the checkpoint of `step` and removes
  // those that the rule does not keep; the best one stays too. With `loss` this one becomes the best.
  // If `write` throws, nothing is left and older checkpoints stay.
  Entry save(int64_t step, const std::function<void(const std::filesystem::path&)>& write,
             std::optional<double> loss = std::nullopt);

  // The folder that save() gives to `write`: for ranks that write into it beside the one that saves.
  std::filesystem::path temporary(int64_t step) const;

 private:
  void remove_leftovers() const;
  void put_in_place(const std::filesystem::path& from, const Entry& entry) const;
  void prune() const;
  std::filesystem::path folder_;
  KeepRule keep_;
};

}  // namespace wam::train
