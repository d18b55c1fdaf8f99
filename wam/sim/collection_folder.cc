#include "wam/sim/collection_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/log.h"
#include "wam/base/quote.h"

namespace wam::sim {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// Raised whenever the same options would give other rows, pictures or files.
constexpr int kFormat = 1;
constexpr const char* kRecordName = "meta/wam_sim.json";
constexpr const char* kLockName = ".wam_sim_collect";

// Everything that decides the dataset's contents.
Json options_json(const CollectOptions& options) {
  return {{"format", kFormat},
          {"episodes", options.episodes},
          {"seed", options.seed},
          {"fps", options.world.fps},
          {"max_speed", options.world.max_speed},
          {"num_blocks", options.world.num_blocks},
          {"view_size", options.world.view_size},
          {"gripper_view_half_width", options.world.gripper_view_half_width},
          {"cruise_speed", options.expert.cruise_speed},
          {"noise", options.expert.noise},
          {"codec", options.codec},
          {"gop", options.gop},
          {"crf", options.crf}};
}

[[noreturn]] void refuse(const fs::path& path, std::string what, std::string got,
                         std::string expected) {
  throw DataError({.where = path.string(),
                   .what = std::move(what),
                   .got = std::move(got),
                   .expected = std::move(expected),
                   .remedy = "Choose another path, or remove the folder."});
}

Json read_record(const fs::path& root) {
  const fs::path path = root / kRecordName;
  if (!fs::exists(path))
    refuse(root, "folder is not empty", "other data", "no folder, or an empty one");
  const Json record = Json::parse(read_text_file(path, size_t{1} << 28), nullptr, false);
  if (!record.is_object() || !record.contains("options") || !record["options"].is_object() ||
      !record.contains("report") || !record["report"].is_object() || !record.contains("files") ||
      !record["files"].is_object()) {
    refuse(path, "record of the collection cannot be read", "damaged text", "a JSON object");
  }
  return record;
}

void require_same_options(const fs::path& root, const Json& stored, const Json& wanted) {
  for (const auto& [name, value] : wanted.items()) {
    const std::string found = stored.contains(name) ? stored[name].dump() : "nothing";
    if (found == value.dump()) continue;
    refuse(root, "folder holds another collection", fmt::format("{} {}", name, quote(found)),
           fmt::format("{} {}", name, value.dump()));
  }
}

void require_files(const fs::path& root, const Json& files) {
  for (const auto& [name, size] : files.items()) {
    std::error_code error;
    const uintmax_t found = fs::file_size(root / name, error);
    if (error) refuse(root, "a file of the collection is missing", quote(name), "the file");
    if (!size.is_number_unsigned() || size.get<uintmax_t>() != found) {
      refuse(root, "a file of the collection was changed",
             fmt::format("{} of {} bytes", quote(name), found), size.dump() + " bytes");
    }
  }
}

CollectReport read_report(const fs::path& root, const Json& record) {
  const Json& stored = record["report"];
  try {
    return {.reused = true,
            .episodes = stored.at("episodes").get<int64_t>(),
            .frames = stored.at("frames").get<int64_t>(),
            .tasks = stored.at("tasks").get<int64_t>(),
            .codec = stored.at("codec").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
    refuse(root / kRecordName, "record of the collection cannot be read", "damaged text",
           "numbers of episodes, frames and tasks");
  }
}

FileDescriptor take_lock(const fs::path& folder) {
  const fs::path path = folder / kLockName;
  FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.get() < 0) throw_io_error(path, "cannot make the lock file", errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) throw_io_error(path, "cannot lock", errno);
  throw DataError({.where = folder.string(),
                   .what = "another process is collecting into this folder",
                   .remedy = "Wait for it, or choose another path."});
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw_io_error(path, "cannot make the folder", error.value());
}

// All but the lock file itself, which stays locked.
void clear_folder(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != kLockName) fs::remove_all(entry.path());
  }
}

}  // namespace

std::optional<CollectReport> find_collection(const CollectOptions& options) {
  const fs::path& root = options.path;
  std::error_code error;
  const fs::file_status status = fs::status(root, error);
  if (!fs::exists(status)) return std::nullopt;
  if (!fs::is_directory(status)) refuse(root, "path is not a folder", "a file", "a folder");
  if (fs::is_empty(root, error) && !error) return std::nullopt;
  if (error) throw_io_error(root, "cannot read the folder", error.value());
  const Json record = read_record(root);
  require_same_options(root, record["options"], options_json(options));
  require_files(root, record["files"]);
  return read_report(root, record);
}

void write_collection_record(const fs::path& root, const CollectOptions& options,
                             const CollectReport& report, const std::vector<fs::path>& files) {
  Json sizes = Json::object();
  for (const fs::path& file : files) sizes[file.generic_string()] = fs::file_size(root / file);
  const Json record = {{"options", options_json(options)},
                       {"report",
                        {{"episodes", report.episodes},
                         {"frames", report.frames},
                         {"tasks", report.tasks},
                         {"codec", report.codec}}},
                       {"files", std::move(sizes)}};
  write_file_atomic(root / kRecordName, record.dump(1) + "\n");
}

PartialFolder::PartialFolder(fs::path final_path)
    : final_path_(std::move(final_path)), path_(final_path_) {
  path_ += ".partial";
  const bool left_over = fs::exists(path_);
  if (left_over && !fs::exists(path_ / kLockName) && !fs::is_empty(path_)) {
    refuse(path_, "folder is needed for writing but holds other data", "no file of a collection",
           "no folder, or what a stopped collection left");
  }
  make_folder(path_);
  lock_ = take_lock(path_);
  if (left_over) log_warn("removing what a stopped collection left in " + path_.string());
  clear_folder(path_);
}

PartialFolder::~PartialFolder() {
  if (published_) return;
  std::error_code error;
  fs::remove_all(path_, error);
  if (error) log_warn("cannot remove " + path_.string() + ": " + error.message());
}

void PartialFolder::publish() {
  std::error_code error;
  fs::remove(path_ / kLockName, error);
  if (error) throw_io_error(path_ / kLockName, "cannot remove", error.value());
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path_)) {
    if (entry.is_directory()) sync_folder(entry.path());
  }
  sync_folder(path_);
  rename_durably(path_, final_path_);
  published_ = true;
}

}  // namespace wam::sim
