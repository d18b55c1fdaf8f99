#include "tests/fuzz/targets.h"

#include <sys/mman.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/data/embodiment.h"
#include "wam/data/json_fields.h"
#include "wam/data/lerobot_meta.h"
#include "wam/data/parquet_reader.h"
#include "wam/tensor/archive.h"
#include "wam/tensor/pickle.h"
#include "wam/tensor/safetensors_header.h"
#include "wam/tensor/safetensors_index.h"
#include "wam/train/tfevents.h"

namespace wam::fuzz {
namespace {

// The input as a file, for readers that map one: in memory, since a file system may flush one that
// is written anew, thousands of times.
const std::filesystem::path& as_file(std::string_view bytes) {
  static const int fd = memfd_create("fuzz input", 0);
  static const std::filesystem::path path = "/proc/self/fd/" + std::to_string(fd);
  WAM_CHECK(fd >= 0 && ftruncate(fd, 0) == 0 &&
            pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return path;
}

// The sum keeps reads from being optimised away and touches every byte.
void touch(const HostTensor& tensor) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.data());
  volatile unsigned sum = 0;
  for (int64_t i = 0; i < tensor.size_bytes(); ++i) sum = sum + bytes[i];
}

void load_all(const TensorArchive& archive) {
  for (const std::string& name : archive.names()) touch(archive.load(name));
}

void run_archive(std::string_view bytes) { load_all(*open_tensor_archive(as_file(bytes))); }

void run_torch_zip(std::string_view bytes) {
  const std::filesystem::path& path = as_file(bytes);
  try {
    load_all(*open_tensor_archive(path));
  } catch (const DataError&) {
  }
  load_all(*open_tensor_archive(path, {.key = "model"}));
}

void run_safetensors(std::string_view bytes) {
  parse_safetensors_header(std::as_bytes(std::span(bytes)), "input");
  run_archive(bytes);
}

void run_safetensors_index(std::string_view bytes) {
  parse_safetensors_index(MappedFile(as_file(bytes)));
  run_archive(bytes);
}

void run_pickle(std::string_view bytes) { read_pickle(std::as_bytes(std::span(bytes)), "input"); }

void run_parquet(std::string_view bytes) {
  const data::ParquetReader reader(as_file(bytes));
  // More rows than a fuzzer's file holds would only be run-length encoded repeats.
  const int64_t rows = std::min<int64_t>(reader.num_rows(), 4096);
  for (const data::ParquetColumnInfo& column : reader.columns()) {
    try {
      switch (column.kind) {
        case data::ParquetKind::kNumber:
          touch(reader.read_numbers(column.name, 0, rows));
          break;
        case data::ParquetKind::kText:
          reader.read_text(column.name, 0, rows);
          break;
        case data::ParquetKind::kImage:
          reader.read_images(column.name, 0, rows);
          break;
        case data::ParquetKind::kTextList:
          reader.read_text_list(column.name);
          break;
        case data::ParquetKind::kOther:
          break;
      }
    } catch (const DataError&) {
    }
  }
}

void run_json_lines(std::string_view bytes) {
  data::for_each_line(as_file(bytes), [](std::string_view line, const std::string& where) {
    const auto attempt = [&](auto&& parse) {
      try {
        parse(line, where);
      } catch (const DataError&) {
      }
    };
    attempt(data::parse_episode_line);
    attempt(data::parse_task_line);
    attempt([](std::string_view text, const std::string& at) {
      const data::Json object = data::parse_json_object(text, at);
      for (const auto& [key, value] : object.items()) data::json_flat_numbers(value, at);
    });
  });
}

void run_config_yaml(std::string_view bytes) {
  YAML::Node node;
  try {
    node = YAML::Load(std::string(bytes));
  } catch (const YAML::Exception&) {
    return;
  }
  data::parse_embodiment(node);
}

void run_tfevents(std::string_view bytes) { train::read_tfevents(as_file(bytes)); }

constexpr Target kTargets[] = {
    {"config_yaml", run_config_yaml}, {"json_lines", run_json_lines},
    {"parquet", run_parquet},         {"pickle", run_pickle},
    {"safetensors", run_safetensors}, {"safetensors_index", run_safetensors_index},
    {"tfevents", run_tfevents},       {"torch_zip", run_torch_zip},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target& find_target(std::string_view name) {
  const auto found = std::ranges::find(kTargets, name, &Target::name);
  WAM_CHECK(found != std::end(kTargets)) << name;
  return *found;
}

}  // namespace wam::fuzz
