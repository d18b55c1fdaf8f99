// bench_load FOLDER: how fast a 5B transformer is read into its final buffers, beside the disk
// itself. Makes a DreamZero-layout checkpoint of dummy bf16 weights in FOLDER (11.2 GB in shards of
// 5 GB) if it is not there. Then, each time with the page cache dropped: every file by direct I/O,
// 8 MiB at a time; and the whole load into bf16 buffers. Reports both rates and the peak of
// anonymous memory.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <thread>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/formats/tensor_name.h"
#include "wam/tensor/safetensors_writer.h"
#include "wam/train/base_model.h"
#include "wam/train/run_plan.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::atoll(line.c_str() + 8) * 1024;
  }
  return 0;
}

class PeakMeter {
 public:
  PeakMeter()
      : thread_([this](std::stop_token stop) {
          while (!stop.stop_requested()) {
            peak_ = std::max(peak_.load(), anonymous_bytes());
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
        }) {}
  int64_t peak() const { return std::max(peak_.load(), anonymous_bytes()); }

 private:
  std::atomic<int64_t> peak_{0};
  std::jthread thread_;
};

std::vector<fs::path> weight_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

int64_t total_bytes(const fs::path& folder) {
  int64_t total = 0;
  for (const fs::path& file : weight_files(folder))
    total += static_cast<int64_t>(fs::file_size(file));
  return total;
}

int open_file(const fs::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags);
  if (fd < 0) throw_io_error(path, "cannot open", errno);
  return fd;
}

void drop_cache(const fs::path& folder) {
  for (const fs::path& file : weight_files(folder)) {
    const int fd = open_file(file, O_RDONLY);
    fdatasync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

double direct_seconds(const fs::path& folder) {
  constexpr size_t kChunk = size_t{8} << 20;
  void* buffer = std::aligned_alloc(4096, kChunk);
  const double begin = now();
  for (const fs::path& file : weight_files(folder)) {
    const int fd = open_file(file, O_RDONLY | O_DIRECT);
    while (::read(fd, buffer, kChunk) > 0) {
    }
    ::close(fd);
  }
  std::free(buffer);
  return now() - begin;
}

void write_dummy(const fs::path& folder, const ParamSet& params) {
  fs::create_directories(folder);
  std::map<std::string, Shape> shapes;
  std::vector<NamedType> types;
  for (const Param& param : params.params()) {
    for (const ParamPart& part : param.parts) {
      const std::string name = std::string(dreamzero_prefix(ModelPart::kDit)) + part.name;
      types.push_back({name, {DType::kBF16, part.shape}});
      shapes[name] = part.shape;
    }
  }
  const auto produce = [&](const std::string& name) {
    HostTensor value(DType::kBF16, shapes.at(name));
    uint16_t bits = 0x3c00;
    for (uint16_t& element : value.as<uint16_t>())
      element = static_cast<uint16_t>(0x3c00 | (bits++ & 0xff));
    return value;
  };
  write_safetensors_sharded(folder, "model", std::move(types), produce, {{"format", "pt"}},
                            5'000'000'000);
}

// Buffers laid out as the plan lays out regions of bf16 weights.
class Buffers {
 public:
  explicit Buffers(const ParamSet& params) {
    for (const FlatBuffer& buffer : params.buffers()) {
      const auto bytes = static_cast<size_t>(buffer.num_elements) * 2;
      total_ += static_cast<int64_t>(bytes);
      void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) throw_io_error("memory", "cannot map", errno);
      madvise(memory, bytes, MADV_HUGEPAGE);
      regions_[buffer.region] = static_cast<std::byte*>(memory);
    }
  }
  int64_t total() const { return total_; }
  void write(const Param& param, const ParamPart& part, const HostTensor& value) {
    const HostTensor rounded = value.to(DType::kBF16);
    std::memcpy(regions_.at(param.region) + (param.offset_elements + part.offset_elements) * 2,
                rounded.data(), static_cast<size_t>(rounded.size_bytes()));
  }

 private:
  std::map<std::string, std::byte*> regions_;
  int64_t total_ = 0;
};

int run(const fs::path& folder) {
  const train::TrainConfig config = train::parse_config(
      "picture_height: 160\npicture_width: 320\nmodel: {preset: 5b}\ndataset: {embodiment: "
      "libero_sim}",
      {}, "5b");
  const std::shared_ptr<const ParamSet> params = train::plan_run(config).step.params;
  if (!fs::exists(folder / "model.safetensors.index.json")) write_dummy(folder, *params);
  const double gigabytes = static_cast<double>(total_bytes(folder)) * 1e-9;
  const auto report = [&](const char* what, double seconds) {
    fmt::print("{:<28} {:6.2f} s  {:.3f} GB/s\n", what, seconds, gigabytes / seconds);
    std::fflush(stdout);
  };
  fmt::print("{:.2f} GB in {} files\n", gigabytes, weight_files(folder).size());
  drop_cache(folder);
  report("direct I/O before", direct_seconds(folder));
  drop_cache(folder);
  Buffers buffers(*params);
  const int64_t before = anonymous_bytes();
  PeakMeter meter;
  const double begin = now();
  train::load_transformer(config, folder.string(), *params,
                          [&](const Param& param, const ParamPart& part, const HostTensor& value) {
                            buffers.write(param, part, value);
                          });
  report("load into bf16 buffers", now() - begin);
  const int64_t peak = meter.peak() - before;
  fmt::print("anonymous memory: peak {:.3f} GiB, final buffers {:.3f} GiB, above them {:.3f} GiB\n",
             static_cast<double>(peak) / (1 << 30),
             static_cast<double>(buffers.total()) / (1 << 30),
             static_cast<double>(peak - buffers.total()) / (1 << 30));
  drop_cache(folder);
  report("direct I/O after", direct_seconds(folder));
  return 0;
}

}  // namespace
}  // namespace wam

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: bench_load FOLDER\n", stderr);
    return 2;
  }
  try {
    return wam::run(argv[1]);
  } catch (const wam::Error& error) {
    std::fprintf(stderr, "bench_load: %s\n", error.what());
    return error.exit_code();
  }
}
