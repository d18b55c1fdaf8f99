#include "wam/train/checkpoint_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "wam/base/error.h"
#include "wam/base/files.h"

namespace wam::train {
namespace {

constexpr std::string_view kPrefix = "step_";
constexpr std::string_view kTemporary = ".writing-";

std::optional<int64_t> parse_step(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc{} || at != end) return std::nullopt;
  return step;
}

std::string step_name(int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

}  // namespace

CheckpointStore::CheckpointStore(std::filesystem::path run_dir, int64_t keep_last)
    : folder_(std::move(run_dir) / "checkpoints"), keep_last_(keep_last) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw_io_error(folder_, "cannot create the folder", error.value());
  remove_leftovers();
}

std::vector<CheckpointStore::Entry> CheckpointStore::list() const {
  std::vector<Entry> entries;
  for (const auto& item : std::filesystem::directory_iterator(folder_)) {
    const auto step = parse_step(item.path().filename().string());
    if (step && item.is_directory()) entries.push_back({*step, item.path()});
  }
  std::ranges::sort(entries, {}, &Entry::step);
  return entries;
}

std::optional<CheckpointStore::Entry> CheckpointStore::latest() const {
  const std::vector<Entry> entries = list();
  if (entries.empty()) return std::nullopt;
  return entries.back();
}

std::filesystem::path CheckpointStore::temporary(int64_t step) const {
  return folder_ / (std::string(kTemporary) + step_name(step));
}

CheckpointStore::Entry CheckpointStore::save(
    int64_t step, const std::function<void(const std::filesystem::path&)>& write) {
  const std::filesystem::path temporary = this->temporary(step);
  const Entry entry{step, folder_ / step_name(step)};
  std::filesystem::remove_all(temporary);
  std::filesystem::create_directory(temporary);
  try {
    write(temporary);
    sync_folder(temporary);
    // A run that was resumed from an earlier checkpoint reaches the same step again.
    std::filesystem::remove_all(entry.path);
    rename_durably(temporary, entry.path);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(temporary, ignored);
    throw;
  }
  prune();
  return entry;
}

void CheckpointStore::remove_leftovers() const {
  for (const auto& item : std::filesystem::directory_iterator(folder_)) {
    if (item.path().filename().string().starts_with(kTemporary)) std::filesystem::remove_all(item.path());
  }
}

void CheckpointStore::prune() const {
  const std::vector<Entry> entries = list();
  for (size_t i = 0; i + static_cast<size_t>(keep_last_) < entries.size(); ++i) {
    std::filesystem::remove_all(entries[i].path);
  }
}

}  // namespace wam::train
