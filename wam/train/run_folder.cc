#include "wam/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/train/checkpoint_store.h"

namespace wam::train {
namespace {

std::string machine_json() {
  utsname info{};
  uname(&info);
  return std::string(info.sysname) + " " + info.release + " " + info.machine;
}

}  // namespace

std::string version_text() { return WAM_VERSION; }

RunFolder::RunFolder(const TrainConfig& config, bool resume) : path_(config.run_dir) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) throw_io_error(path_, "cannot create the run folder", error.value());
  const std::filesystem::path lock = path_ / ".lock";
  lock_ = open(lock.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_ < 0) throw_io_error(lock, "cannot open", errno);
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    close(lock_);
    throw DataError({.where = path_.string(),
                     .what = "run folder is in use by another process",
                     .remedy = "Wait for it to end, or choose another run_dir."});
  }
  if (!resume && CheckpointStore(path_, {config.keep_last}).latest()) {
    close(lock_);
    throw ConfigError({.where = path_.string(),
                       .what = "run folder holds checkpoints of an earlier run",
                       .remedy = "Add --resume to continue it, or choose another run_dir."});
  }
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) close(lock_);
}

void RunFolder::describe(const TrainConfig& config, const std::string& command_line,
                         const std::string& metadata_json, const std::string& plan_text) const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const nlohmann::json j = {
      {"command_line", command_line},
      {"version", version_text()},
      {"machine", machine_json()},
      {"cores", std::thread::hardware_concurrency()},
      {"started_unix", std::chrono::duration_cast<std::chrono::seconds>(now).count()}};
  write_file_atomic(path_ / "run.json", j.dump(2) + "\n");
  write_file_atomic(path_ / "config.yaml", to_yaml(config));
  write_file_atomic(path_ / "metadata.json", metadata_json);
  write_file_atomic(path_ / "plan.txt", plan_text);
}

}  // namespace wam::train
