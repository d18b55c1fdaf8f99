#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "wam/base/check.h"
#include "wam/base/file_descriptor.h"
#include "wam/base/files.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryMark = ".wam-tmp-";
constexpr size_t kBufferBytes = size_t{1} << 20;
// Linux moves at most 0x7ffff000 bytes a call; a smaller step lets signals in between.
constexpr size_t kMaxWriteBytes = size_t{1} << 28;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// ".model.safetensors.wam-tmp-PID-N": hidden, in the same folder, unique among live processes.
fs::path temporary_path(const fs::path& path) {
  static std::atomic<uint64_t> counter{0};
  return folder_of(path) / ("." + path.filename().string() + std::string(kTemporaryMark) +
                            std::to_string(::getpid()) + "-" + std::to_string(counter++));
}

}  // namespace

int write_all(int fd, const void* data, size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::write(fd, next, std::min(size, kMaxWriteBytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ENOSPC;
    next += count;
    size -= static_cast<size_t>(count);
  }
  return 0;
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)), temp_path_(temporary_path(path_)) {
  // A leftover of a dead process that had our process id is overwritten.
  fd_ = ::open(temp_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd_ < 0) throw_io_error(path_, "cannot write", errno);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (fd_ < 0) return;
  ::close(fd_);
  fd_ = -1;
  ::unlink(temp_path_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  WAM_CHECK(fd_ >= 0) << "write after commit or failure";
  bytes_written_ += static_cast<int64_t>(bytes.size());
  if (buffer_.size() + bytes.size() > kBufferBytes) flush_buffer();
  if (bytes.size() < kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return;
  }
  const int error = write_all(fd_, bytes.data(), bytes.size());
  if (error == 0) return;
  discard();
  throw_io_error(path_, "cannot write", error);
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::flush_buffer() {
  const int error = write_all(fd_, buffer_.data(), buffer_.size());
  buffer_.clear();
  if (error == 0) return;
  discard();
  throw_io_error(path_, "cannot write", error);
}

void AtomicFile::commit() {
  WAM_CHECK(fd_ >= 0) << "commit after commit or failure";
  flush_buffer();
  int error = ::fsync(fd_) == 0 ? 0 : errno;
  // Some file systems (NFS) report a failed write only here.
  if (::close(fd_) != 0 && error == 0) error = errno;
  fd_ = -1;
  if (error == 0 && ::rename(temp_path_.c_str(), path_.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temp_path_.c_str());
    throw_io_error(path_, "cannot write", error);
  }
  sync_folder(folder_of(path_));
}

void write_file_atomic(const fs::path& path, std::string_view text) {
  write_file_atomic(path, std::as_bytes(std::span(text)));
}

void write_file_atomic(const fs::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

bool is_temporary_name(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with('.') && name.find(kTemporaryMark) != std::string::npos;
}

void sync_folder(const fs::path& folder) {
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) throw_io_error(folder, "cannot open the folder", errno);
  // EINVAL: the file system (some network ones) has no flush for folders.
  if (::fsync(directory.get()) != 0 && errno != EINVAL) {
    throw_io_error(folder, "cannot flush the folder", errno);
  }
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_io_error(to, "cannot rename to it", errno);
  sync_folder(folder_of(to));
}

}  // namespace wam
