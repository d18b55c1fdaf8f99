// What the tests of archives share.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/hash.h"
#include "wam/tensor/archive.h"

namespace wam {

// A tensor holding 0, 1, 2, ...
inline HostTensor counting(DType dtype, Shape shape) {
  HostTensor values(DType::kF64, shape);
  for (int64_t i = 0; i < values.num_elements(); ++i)
    values.as<double>()[static_cast<size_t>(i)] = static_cast<double>(i);
  return values.to(dtype);
}

// The values as doubles.
inline std::vector<double> values_of(const HostTensor& tensor) {
  const HostTensor wide = tensor.to(DType::kF64);
  const auto span = wide.as<double>();
  return {span.begin(), span.end()};
}

// Message of the DataError that opening and loading everything throws; "" if there is none.
inline std::string error_of_loading(const std::filesystem::path& path,
                                    const ArchiveOptions& options = {}) {
  try {
    const auto archive = open_tensor_archive(path, options);
    for (const std::string& name : archive->names()) archive->load(name);
    return "";
  } catch (const DataError& error) {
    return error.what();
  }
}

// Writes without flushing to disk, which is most of the time of thousands of small files. The old
// file is removed first: some file systems flush one that is cut to nothing and written anew.
inline void write_unflushed(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.flush().good()) << path;
}

inline std::string error_of_bytes(std::string_view bytes, const ArchiveOptions& options = {}) {
  const TempDir folder;
  write_unflushed(folder / "file", bytes);
  return error_of_loading(folder / "file", options);
}

// One line that names what is wrong.
inline void expect_error(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "got: " << text << "\nexpected in it: " << part;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

// SHA-256 of all tensors' bytes in order of name.
inline std::string digest_of(const TensorArchive& archive) {
  Sha256 hash;
  for (const std::string& name : archive.names()) {
    const HostTensor tensor = archive.load(name);
    hash.update(
        {static_cast<const std::byte*>(tensor.data()), static_cast<size_t>(tensor.size_bytes())});
  }
  return hash.hex();
}

// A file below the environment's folder, or an empty path where it is absent.
inline std::filesystem::path file_below(const char* variable, const std::string& name) {
  const char* folder = std::getenv(variable);
  const std::filesystem::path path = folder == nullptr ? "" : std::filesystem::path(folder) / name;
  return folder != nullptr && std::filesystem::exists(path) ? path : "";
}

}  // namespace wam
