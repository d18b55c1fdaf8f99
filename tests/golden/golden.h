// Reference values: files found by name prefix in WAM_GOLDEN_DIR, sizes read from their metadata.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "wam/exec/cuda.h"
#include "wam/tensor/archive.h"

namespace wam::golden {

// Sorted paths of "<prefix>*.safetensors"; empty if the folder or such files are absent.
inline std::vector<std::filesystem::path> files(const std::string& prefix) {
  const char* folder = std::getenv("WAM_GOLDEN_DIR");
  std::vector<std::filesystem::path> found;
  if (folder == nullptr || !std::filesystem::is_directory(folder)) return found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".safetensors")) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

// Where the files are checked, and in which type: WAM_GOLDEN_DEVICE (cpu or cuda) and
// WAM_GOLDEN_DTYPE (f32 or bf16).
struct Place {
  bool cuda = false;
  DType dtype = DType::kF32;
};
inline Place place() {
  const auto value = [](const char* name) {
    return std::string(std::getenv(name) ? std::getenv(name) : "");
  };
  return {value("WAM_GOLDEN_DEVICE") == "cuda",
          value("WAM_GOLDEN_DTYPE") == "bf16" ? DType::kBF16 : DType::kF32};
}
inline std::unique_ptr<Device> open_device() {
  return place().cuda ? make_cuda_device() : make_cpu_device();
}

// How far a result may be off that float32 on the CPU meets within `f32_bound`. On a GPU the same
// sums run in other orders: 1e-4 of it all. In bf16 every stored value is rounded, by at most 2^-9
// of itself and independently: `roundings` of them between input and result add up as their root,
// four standard deviations of it.
inline double bound(double f32_bound, double roundings) {
  const Place p = place();
  if (p.dtype == DType::kBF16) return 4 * std::sqrt(roundings) / 512;
  return p.cuda ? std::max(f32_bound, 1e-4) : f32_bound;
}

class File {
 public:
  explicit File(const std::filesystem::path& path) : archive_(open_tensor_archive(path)) {}
  const TensorArchive& archive() const { return *archive_; }
  // A JSON value of the metadata: "config", "optimizer".
  nlohmann::json json(const std::string& key) const {
    return nlohmann::json::parse(archive_->metadata().at(key));
  }
  bool has(const std::string& name) const { return archive_->contains(name); }
  HostTensor load(const std::string& name) const { return archive_->load(name); }
  HostTensor f32(const std::string& name) const { return load(name).to(DType::kF32); }
  Shape shape(const std::string& name) const { return archive_->find(name)->shape; }

 private:
  std::unique_ptr<TensorArchive> archive_;
};

inline double norm(const HostTensor& x) {
  const HostTensor wide =
      x.to(DType::kF64);  // named: a span of a temporary would dangle in the loop
  double sum = 0;
  for (const double v : wide.as<double>()) sum += v * v;
  return std::sqrt(sum);
}

inline double difference_norm(const HostTensor& a, const HostTensor& b) {
  const HostTensor wa = a.to(DType::kF64), wb = b.to(DType::kF64);
  double sum = 0;
  for (int64_t i = 0; i < wa.num_elements(); ++i) {
    const double d =
        wa.as<double>()[static_cast<size_t>(i)] - wb.as<double>()[static_cast<size_t>(i)];
    sum += d * d;
  }
  return std::sqrt(sum);
}

// |got - want| / |want|, with a line in the log.
inline double relative(const HostTensor& got, const HostTensor& want, const std::string& what) {
  EXPECT_EQ(got.num_elements(), want.num_elements()) << what;
  if (got.num_elements() != want.num_elements()) return INFINITY;
  const double error = difference_norm(got, want) / norm(want);
  std::printf("  %-28s relative error %.2e\n", what.c_str(), error);
  return error;
}

// A transposed copy: out[..., i_perm(k), ...] in the order `perm` of the input's dims.
inline HostTensor permuted(const HostTensor& x, const std::vector<int>& perm) {
  const HostTensor in = x.to(DType::kF32);
  std::vector<int64_t> dims, strides(perm.size(), 1);
  for (int d = static_cast<int>(perm.size()) - 2; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = strides[static_cast<size_t>(d) + 1] * in.shape()[d + 1];
  }
  for (const int d : perm) dims.push_back(in.shape()[d]);
  HostTensor out(DType::kF32, Shape(dims));
  std::vector<int64_t> at(perm.size(), 0);
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    int64_t source = 0;
    for (size_t d = 0; d < perm.size(); ++d)
      source += at[d] * strides[static_cast<size_t>(perm[d])];
    out.as<float>()[static_cast<size_t>(i)] = in.as<float>()[static_cast<size_t>(source)];
    for (size_t d = perm.size(); d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

}  // namespace wam::golden
