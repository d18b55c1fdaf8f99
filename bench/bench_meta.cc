// bench_meta write FOLDER VERSION EPISODES: the meta folder of a dataset of that many episodes
// (v2.1 or v3.0: three cameras, 1000 tasks, statistics of each episode in v3.0), without its data.
// bench_meta open FOLDER: opens it as `wam train` does, up to the point where samples would be
// decoded, and draws windows; one JSON object with seconds and the process's peak memory.
// What a start costs must come from the meta alone and fit a million episodes: see
// docs/performance.md.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/data/parquet_writer.h"
#include "wam/train/config.h"
#include "wam/train/run_data.h"
#include "wam/train/run_plan.h"

namespace {

namespace fs = std::filesystem;
using wam::DType;
using wam::HostTensor;
using wam::data::ParquetColumnData;

constexpr int64_t kFiles = 20, kRowsOfGroup = 1000, kTasks = 1000, kPerDataFile = 500;
constexpr double kFps = 30;
const std::vector<std::string> kCameras = {"observation.images.left", "observation.images.right",
                                           "observation.images.wrist"};

int64_t length_of(int64_t episode) { return 200 + episode * 7919 % 400; }
std::string task_of(int64_t episode) {
  return fmt::format("put object {} into container {}", episode % kTasks, episode % kTasks % 7);
}

std::string info(const std::string& version, int64_t episodes) {
  const bool v3 = version == "v3.0";
  int64_t frames = 0;
  for (int64_t e = 0; e < episodes; ++e) frames += length_of(e);
  std::string features;
  for (const std::string& camera : kCameras) {
    features += fmt::format(R"("{}": {{"dtype": "video", "shape": [480, 640, 3], )"
                            R"("names": ["height", "width", "channels"]}}, )",
                            camera);
  }
  for (const char* column : {"timestamp", "frame_index", "episode_index", "index", "task_index"}) {
    features += fmt::format(R"("{}": {{"dtype": "int64", "shape": [1], "names": null}}, )", column);
  }
  features += R"("observation.state": {"dtype": "float32", "shape": [14], "names": null}, )"
              R"("action": {"dtype": "float32", "shape": [14], "names": null})";
  return fmt::format(
      R"({{"codebase_version": "{}", "robot_type": "arm", "fps": 30, "chunks_size": 1000, )"
      R"("total_episodes": {}, "total_frames": {}, "total_tasks": {}, "data_path": "{}", )"
      R"("video_path": "{}", "features": {{{}}}}})",
      version, episodes, frames, kTasks,
      v3 ? "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
         : "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
      v3 ? "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
         : "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
      features);
}

void write_stats(const fs::path& meta) {
  std::string text = "{";
  for (const char* column : {"observation.state", "action"}) {
    text += fmt::format(R"({}"{}": {{)", text.size() > 1 ? ", " : "", column);
    const char* separator = "";
    for (const char* name : {"min", "max", "mean", "std", "q01", "q99"}) {
      const double value = name[0] == 'm' || name[1] == '0' ? -1.0 : 1.0;
      text += fmt::format(R"({}"{}": [)", separator, name);
      for (int i = 0; i < 14; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", value);
      text += "]";
      separator = ", ";
    }
    text += "}";
  }
  wam::write_file_atomic(meta / "stats.json", text + "}");
}

void write_v21(const fs::path& meta, int64_t episodes) {
  wam::AtomicFile lines(meta / "episodes.jsonl");
  for (int64_t e = 0; e < episodes; ++e) {
    lines.write(fmt::format("{{\"episode_index\": {}, \"tasks\": [\"{}\"], \"length\": {}}}\n", e,
                            task_of(e), length_of(e)));
  }
  lines.commit();
  wam::AtomicFile tasks(meta / "tasks.jsonl");
  for (int64_t t = 0; t < kTasks; ++t) {
    tasks.write(fmt::format("{{\"task_index\": {}, \"task\": \"{}\"}}\n", t, task_of(t)));
  }
  tasks.commit();
}

HostTensor integers(const std::vector<int64_t>& values) {
  HostTensor tensor(DType::kI64, {std::ssize(values)});
  std::copy(values.begin(), values.end(), tensor.as<int64_t>().begin());
  return tensor;
}
HostTensor reals(const std::vector<double>& values, int64_t width = 0) {
  const int64_t rows = std::ssize(values) / std::max<int64_t>(width, 1);
  HostTensor tensor =
      width == 0 ? HostTensor(DType::kF64, {rows}) : HostTensor(DType::kF64, {rows, width});
  std::copy(values.begin(), values.end(), tensor.as<double>().begin());
  return tensor;
}

// Where the next episode goes.
struct Cursor {
  int64_t row = 0;    // of the whole dataset
  int64_t first = 0;  // frame of its video file
};

std::vector<ParquetColumnData> v3_rows(int64_t begin, int64_t end, int64_t file, Cursor& at) {
  std::vector<int64_t> index, length, chunk, number, from, to, files, zeros;
  std::vector<double> start, stop;
  wam::data::ParquetTextList tasks;
  for (int64_t e = begin; e < end; ++e) {
    if (e % kPerDataFile == 0) at.first = 0;
    index.push_back(e);
    length.push_back(length_of(e));
    tasks.push_back({task_of(e)});
    chunk.push_back(e / kPerDataFile / 1000);
    number.push_back(e / kPerDataFile % 1000);
    from.push_back(at.row);
    to.push_back(at.row + length_of(e));
    start.push_back(static_cast<double>(at.first) / kFps);
    stop.push_back(static_cast<double>(at.first + length_of(e)) / kFps);
    zeros.push_back(0);
    files.push_back(file);
    at.row += length_of(e);
    at.first += length_of(e);
  }
  std::vector<ParquetColumnData> columns = {
      {"episode_index", integers(index)},    {"tasks", std::move(tasks)},
      {"length", integers(length)},          {"data/chunk_index", integers(chunk)},
      {"data/file_index", integers(number)}, {"dataset_from_index", integers(from)},
      {"dataset_to_index", integers(to)}};
  for (const std::string& camera : kCameras) {
    const std::string prefix = "videos/" + camera + "/";
    columns.push_back({prefix + "chunk_index", integers(chunk)});
    columns.push_back({prefix + "file_index", integers(number)});
    columns.push_back({prefix + "from_timestamp", reals(start)});
    columns.push_back({prefix + "to_timestamp", reals(stop)});
  }
  for (const char* column : {"observation.state", "action"}) {
    for (const char* name : {"min", "max", "mean", "std"}) {
      columns.push_back({fmt::format("stats/{}/{}", column, name),
                         reals(std::vector<double>(index.size() * 14, 0.5), 14)});
    }
  }
  columns.push_back({"meta/episodes/chunk_index", integers(zeros)});
  columns.push_back({"meta/episodes/file_index", integers(files)});
  return columns;
}

void write_v30(const fs::path& meta, int64_t episodes) {
  const int64_t per_file = (episodes + kFiles - 1) / kFiles;
  Cursor at;
  for (int64_t file = 0; file * per_file < episodes; ++file) {
    const fs::path path = meta / fmt::format("episodes/chunk-000/file-{:03d}.parquet", file);
    fs::create_directories(path.parent_path());
    wam::data::ParquetWriter writer(path);
    const int64_t last = std::min(episodes, (file + 1) * per_file);
    for (int64_t begin = file * per_file; begin < last; begin += kRowsOfGroup) {
      writer.write_row_group(v3_rows(begin, std::min(last, begin + kRowsOfGroup), file, at));
    }
    writer.finish();
  }
  std::vector<int64_t> indexes;
  wam::data::ParquetText texts;
  for (int64_t t = 0; t < kTasks; ++t) {
    indexes.push_back(t);
    texts.push_back(task_of(t));
  }
  wam::data::write_parquet(meta / "tasks.parquet",
                           {{"task_index", integers(indexes)}, {"task", std::move(texts)}});
}

void write(const fs::path& folder, const std::string& version, int64_t episodes) {
  const fs::path meta = folder / "meta";
  fs::create_directories(meta);
  version == "v3.0" ? write_v30(meta, episodes) : write_v21(meta, episodes);
  write_stats(meta);
  wam::write_file_atomic(meta / "info.json", info(version, episodes));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of /proc/self/status, in MiB.
double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

void open(const fs::path& folder) {
  const std::string yaml = fmt::format(R"(
global_batch_size: 256
model: {{preset: custom, num_blocks: 4}}
text_encoder: {{tokenizer: bytes}}
dataset:
  path: "{}"
  validation_fraction: 0.01
  embodiment:
    embodiment_tag: arm
    views: [left, right, wrist]
    view_height: 176
    view_width: 320
    tiling: wrist_on_top
    prompt_template: "{{i}}"
    state: [state]
    action: [action]
    action_horizon: 24
)",
                                       folder.string());
  const wam::train::TrainConfig config = wam::train::parse_config(yaml, {}, "bench_meta");
  const wam::DitConfig model = wam::train::resolve_model(config);
  const double before = peak_mib();
  auto start = std::chrono::steady_clock::now();
  const auto dataset = wam::data::open_dataset(folder);
  const double opened = seconds_since(start);
  const size_t episodes = dataset->episodes().size();
  start = std::chrono::steady_clock::now();
  const wam::train::RunData run = wam::train::open_run_data(config, model);
  const double ready = seconds_since(start);
  fmt::print(
      "{{\"folder\": \"{}\", \"episodes\": {}, \"open_dataset_s\": {:.2f}, "
      "\"open_run_s\": {:.2f}, \"peak_mib_both\": {:.0f}, \"peak_mib_before\": {:.0f}}}\n",
      folder.string(), episodes, opened, ready, peak_mib(), before);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 5 && std::strcmp(argv[1], "write") == 0) {
      write(argv[2], argv[3], std::stoll(argv[4]));
      return 0;
    }
    if (argc == 3 && std::strcmp(argv[1], "open") == 0) {
      open(argv[2]);
      return 0;
    }
    std::fputs("bench_meta write FOLDER VERSION EPISODES | bench_meta open FOLDER\n", stderr);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_meta: %s\n", error.what());
    return 1;
  }
}
