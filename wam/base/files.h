// Files: mapped reading, writing that is whole or absent, space left. Failures are DataError with
// path, the system's reason and a remedy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wam {

// A regular file's bytes, mapped read-only. Movable; unmaps in the destructor. The file must not be
// shortened while it is mapped: touching bytes that are gone is a fault (SIGBUS), not an error.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  // Tells the system that the range is read soon, or not again; a hint, never an error.
  void will_need(size_t offset, size_t length) const;
  void done_with(size_t offset, size_t length) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The whole file; DataError if it is longer than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path, size_t max_bytes = size_t{1} << 30);

// Writes a file that appears under its name complete and on disk, or not at all: bytes go to a
// temporary file in the same folder, commit() flushes it, renames it over the target and flushes
// the folder. The destructor removes the temporary file if commit() was not reached. The folder
// must exist. One thread at a time.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  int64_t bytes_written() const { return bytes_written_; }
  void commit();

 private:
  void flush_buffer();
  void discard() noexcept;
  std::filesystem::path path_, temp_path_;
  std::vector<std::byte> buffer_;
  int64_t bytes_written_ = 0;
  int fd_ = -1;
};

void write_file_atomic(const std::filesystem::path& path, std::string_view text);
void write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes);
// True for the names AtomicFile gives its temporary files: what a killed process leaves behind.
bool is_temporary_name(const std::filesystem::path& path);
// Flushes a folder's entries (new, renamed and removed names) to disk.
void sync_folder(const std::filesystem::path& folder);
// Renames a file or folder over `to` (same file system) and flushes the folder of `to`.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

// Bytes an unprivileged process may still write at `path` or its nearest existing parent.
int64_t free_disk_bytes(const std::filesystem::path& path);

// Throws DataError "[path] action: reason of errno" with the remedy that fits the reason.
[[noreturn]] void throw_io_error(const std::filesystem::path& path, std::string_view action,
                                 int error_number);

// A fresh folder below the system's temporary folder, removed with its contents at the end of
// scope. For tests.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace wam
