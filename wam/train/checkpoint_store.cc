#include "wam/train/checkpoint_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/strings.h"

namespace wam::train {
namespace {

constexpr std::string_view kPrefix = "step_";
constexpr std::string_view kTemporary = ".writing-";
// A checkpoint that another of the same step is about to replace.
constexpr std::string_view kReplaced = ".replaced-";
constexpr const char* kBest = "best.json";

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

CheckpointStore::CheckpointStore(std::filesystem::path run_dir, KeepRule keep)
    : folder_(std::move(run_dir) / "checkpoints"), keep_(keep) {
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

std::optional<CheckpointStore::Best> CheckpointStore::best() const {
  const std::filesystem::path path = folder_ / kBest;
  if (!std::filesystem::exists(path)) return std::nullopt;
  Best best;
  try {
    const nlohmann::json j = nlohmann::json::parse(read_text_file(path));
    best = {j.at("step").get<int64_t>(), j.at("validation_loss").get<double>()};
  } catch (const nlohmann::json::exception&) {
    throw DataError({.where = path.string(),
                     .what = "is damaged",
                     .expected = "step and validation_loss",
                     .remedy = "Remove it: the next validation names a best checkpoint anew."});
  }
  if (!std::filesystem::exists(folder_ / step_name(best.step))) return std::nullopt;
  return best;
}

void CheckpointStore::demand_room(int64_t bytes, int64_t reserve) const {
  const int64_t room = free_disk_bytes(folder_);
  if (room >= bytes + reserve) return;
  throw DataError({.where = folder_.string(),
                   .what = "not enough free space for a checkpoint",
                   .got = format_bytes(room) + " free",
                   .expected = format_bytes(bytes) + " and " + format_bytes(reserve) + " in reserve",
                   .remedy = "Free space on this disk, lower keep_last or checkpoint.reserve_bytes, or move "
                             "the run folder; the checkpoints that are there stay."});
}

CheckpointStore::Entry CheckpointStore::save(
    int64_t step, const std::function<void(const std::filesystem::path&)>& write,
    std::optional<double> loss) {
  const std::filesystem::path temporary = this->temporary(step);
  const Entry entry{step, folder_ / step_name(step)};
  std::filesystem::remove_all(temporary);
  std::filesystem::create_directory(temporary);
  try {
    write(temporary);
    sync_folder(temporary);
    put_in_place(temporary, entry);
    if (loss) {
      const nlohmann::json j = {{"step", step}, {"validation_loss", *loss}};
      write_file_atomic(folder_ / kBest, j.dump() + "\n");
    }
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(temporary, ignored);
    throw;
  }
  prune();
  return entry;
}

// A run that was resumed from an earlier checkpoint reaches the same step again: the old one steps
// aside until the new one has its name.
void CheckpointStore::put_in_place(const std::filesystem::path& from, const Entry& entry) const {
  const std::filesystem::path aside = folder_ / (std::string(kReplaced) + step_name(entry.step));
  const bool replaces = std::filesystem::exists(entry.path);
  if (replaces) rename_durably(entry.path, aside);
  rename_durably(from, entry.path);
  if (replaces) std::filesystem::remove_all(aside);
}

void CheckpointStore::remove_leftovers() const {
  std::vector<std::filesystem::path> items;
  for (const auto& item : std::filesystem::directory_iterator(folder_)) items.push_back(item.path());
  for (const std::filesystem::path& path : items) {
    const std::string name = path.filename().string();
    if (name.starts_with(kReplaced)) {
      const std::filesystem::path old = folder_ / name.substr(kReplaced.size());
      if (!std::filesystem::exists(old)) rename_durably(path, old);
    }
    if (name.starts_with(kTemporary) || name.starts_with(kReplaced)) std::filesystem::remove_all(path);
  }
}

void CheckpointStore::prune() const {
  const std::vector<Entry> entries = list();
  const auto best_one = best();
  for (size_t i = 0; i + static_cast<size_t>(keep_.last) < entries.size(); ++i) {
    const bool is_kept = (keep_.every > 0 && entries[i].step % keep_.every == 0) ||
                         (best_one && best_one->step == entries[i].step);
    if (is_kept) continue;
    // Half a checkpoint must not keep the name of a whole one.
    const std::filesystem::path away = temporary(entries[i].step);
    std::filesystem::remove_all(away);
    rename_durably(entries[i].path, away);
    std::filesystem::remove_all(away);
  }
}

}  // namespace wam::train
