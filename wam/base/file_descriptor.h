// Owns one POSIX file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace wam {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  // Gives up ownership.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Writes all of [data, data + size), retrying short and interrupted writes. Returns 0 or errno.
int write_all(int fd, const void* data, size_t size);

}  // namespace wam
