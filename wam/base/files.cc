#include "wam/base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/file_descriptor.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

const char* remedy_for(int error_number) {
  switch (error_number) {
    case ENOSPC:
      return "The disk is full: free space there or choose a folder on another disk.";
    case EDQUOT:
      return "The disk quota is used up: free space or choose another folder.";
    case EFBIG:
      return "The file would pass the size limit (ulimit -f or the file system's): raise it.";
    case EACCES:
    case EPERM:
      return "Check the owner and the permissions of the file and its folders.";
    case EROFS:
      return "The file system is read-only: choose another folder.";
    case ENOENT:
      return "Check the path; the folder must exist.";
    case ENOTDIR:
      return "Check the path: a part of it is a file, not a folder.";
    case EISDIR:
      return "Give a file, not a folder.";
    case EMFILE:
    case ENFILE:
      return "Too many files are open: raise the limit (ulimit -n).";
    case ENAMETOOLONG:
      return "Choose a shorter name.";
    case EIO:
      return "The device failed: check the disk and the system's log.";
    default:
      return "Check the path and the disk.";
  }
}

// Size of an open regular file.
size_t regular_file_size(const FileDescriptor& file, const fs::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    throw_io_error(path, "cannot read the file's status", errno);
  if (S_ISDIR(status.st_mode)) throw_io_error(path, "cannot read", EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw DataError(
        {.where = path.string(), .what = "not a regular file", .remedy = "Give a file on disk."});
  }
  return static_cast<size_t>(status.st_size);
}

FileDescriptor open_for_reading(const fs::path& path) {
  // Not blocking: opening a FIFO must come back to be refused.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) throw_io_error(path, "cannot open", errno);
  return file;
}

// madvise wants page boundaries: the pages wholly or partly in the range.
void advise(const std::byte* data, size_t size, size_t offset, size_t length, int advice) {
  if (data == nullptr || offset >= size) return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page * page;
  const size_t end = length > size - offset ? size : offset + length;
  ::madvise(const_cast<std::byte*>(data) + begin, end - begin, advice);
}

}  // namespace

void throw_io_error(const fs::path& path, std::string_view action, int error_number) {
  throw DataError(
      {.where = path.string(),
       .what = std::string(action) + ": " + std::generic_category().message(error_number),
       .remedy = remedy_for(error_number)});
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  const FileDescriptor file = open_for_reading(path);
  size_ = regular_file_size(file, path);
  if (size_ == 0) return;
  void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) throw_io_error(path, "cannot map into memory", errno);
  data_ = static_cast<const std::byte*>(memory);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::will_need(size_t offset, size_t length) const {
  advise(data_, size_, offset, length, MADV_WILLNEED);
}

void MappedFile::done_with(size_t offset, size_t length) const {
  advise(data_, size_, offset, length, MADV_DONTNEED);
}

std::string read_text_file(const fs::path& path, size_t max_bytes) {
  const FileDescriptor file = open_for_reading(path);
  const size_t size = regular_file_size(file, path);
  if (size > max_bytes) {
    throw DataError({.where = path.string(),
                     .what = "file too long",
                     .got = std::to_string(size) + " bytes",
                     .expected = "at most " + std::to_string(max_bytes),
                     .remedy = "Check that this is the file meant."});
  }
  std::string text(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(file.get(), text.data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error(path, "cannot read", errno);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return text;
}

int64_t free_disk_bytes(const fs::path& path) {
  std::error_code ignored;
  fs::path place = fs::absolute(path, ignored);
  while (!fs::exists(place, ignored) && place.has_relative_path()) place = place.parent_path();
  struct statvfs status {};
  if (::statvfs(place.c_str(), &status) != 0)
    throw_io_error(place, "cannot ask for free space", errno);
  return static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_frsize);
}

TempDir::TempDir() {
  std::string name = (fs::temp_directory_path() / "wam-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw_io_error(name, "cannot make a temporary folder", errno);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace wam
