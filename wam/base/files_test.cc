#include "wam/base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "wam/base/error.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

size_t num_entries(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// Text of the DataError that `action` throws.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no DataError";
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Files, MapsAndReads) {
  const TempDir folder;
  write_file_atomic(folder / "a.txt", "hello");
  MappedFile file(folder / "a.txt");
  EXPECT_EQ(file.text(), "hello");
  EXPECT_EQ(file.size(), 5u);
  file.will_need(0, 100);
  file.done_with(2, 1);
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.text(), "hello");
  EXPECT_EQ(read_text_file(folder / "a.txt"), "hello");
  EXPECT_EQ(num_entries(folder.path()), 1u);
}

TEST(Files, EmptyFile) {
  const TempDir folder;
  write_file_atomic(folder / "empty", "");
  EXPECT_EQ(MappedFile(folder / "empty").size(), 0u);
  EXPECT_EQ(read_text_file(folder / "empty"), "");
}

TEST(Files, RefusesWhatIsNoRegularFile) {
  const TempDir folder;
  expect_contains(error_of([&] { MappedFile file(folder / "absent"); }), "No such file");
  expect_contains(error_of([&] { MappedFile file(folder.path()); }), "directory");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_contains(error_of([&] { read_text_file(folder / "pipe"); }), "not a regular file");
  write_file_atomic(folder / "long", std::string(100, 'x'));
  expect_contains(error_of([&] { read_text_file(folder / "long", 99); }),
                  "got 100 bytes, expected at most 99");
}

TEST(Files, WritesLargeAndSmallPieces) {
  const TempDir folder;
  std::string expected;
  AtomicFile file(folder / "out");
  for (size_t size : {size_t{0}, size_t{1}, size_t{1} << 20, size_t{3} << 20, size_t{17},
                      (size_t{1} << 20) - 1}) {
    const std::string piece(size, static_cast<char>('a' + size % 26));
    file.write(piece);
    expected += piece;
  }
  EXPECT_EQ(file.bytes_written(), static_cast<int64_t>(expected.size()));
  EXPECT_FALSE(fs::exists(folder / "out"));
  file.commit();
  EXPECT_EQ(read_text_file(folder / "out"), expected);
  EXPECT_EQ(num_entries(folder.path()), 1u);
}

TEST(Files, UncommittedFileLeavesNothingAndTheOldOneStays) {
  const TempDir folder;
  write_file_atomic(folder / "out", "old");
  {
    AtomicFile file(folder / "out");
    file.write("new");
    EXPECT_EQ(num_entries(folder.path()), 2u);
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      EXPECT_EQ(is_temporary_name(entry.path()), entry.path().filename() != "out");
    }
  }
  EXPECT_EQ(num_entries(folder.path()), 1u);
  EXPECT_EQ(read_text_file(folder / "out"), "old");
}

TEST(Files, FailureToWriteNamesPathReasonAndRemedy) {
  const TempDir folder;
  write_file_atomic(folder / "file", "x");
  std::string text = error_of([&] { write_file_atomic(folder / "absent" / "out", "x"); });
  expect_contains(text, "absent/out");
  expect_contains(text, "folder must exist");
  expect_contains(error_of([&] { write_file_atomic(folder / "file" / "out", "x"); }),
                  "Not a directory");
  expect_contains(error_of([&] { throw_io_error("/disk/f", "cannot write", ENOSPC); }),
                  "[/disk/f] cannot write: No space left on device. The disk is full");
}

// A size limit of the process stands in for a full disk: write() fails half-way.
TEST(Files, FailureHalfWayLeavesTheOldFile) {
  const TempDir folder;
  write_file_atomic(folder / "out", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 3000000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string text =
      error_of([&] { write_file_atomic(folder / "out", std::string(5000000, 'x')); });
  const std::string late = error_of([&] {
    AtomicFile file(folder / "out");
    for (int i = 0; i < 50; ++i) file.write(std::string(100000, 'y'));
    file.commit();
  });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  expect_contains(text, "File too large");
  expect_contains(late, "ulimit -f");
  EXPECT_EQ(read_text_file(folder / "out"), "old");
  EXPECT_EQ(num_entries(folder.path()), 1u);
}

TEST(Files, RenameOntoAFolderIsRefusedAndCleanedUp) {
  const TempDir folder;
  fs::create_directories(folder / "out" / "inner");
  error_of([&] { write_file_atomic(folder / "out", "x"); });
  EXPECT_EQ(num_entries(folder.path()), 1u);
}

TEST(Files, RenamesFolders) {
  const TempDir folder;
  fs::create_directory(folder / "a");
  rename_durably(folder / "a", folder / "b");
  EXPECT_TRUE(fs::is_directory(folder / "b"));
  expect_contains(error_of([&] { rename_durably(folder / "a", folder / "c"); }), "No such file");
}

TEST(Files, FreeSpaceOfAbsentPathIsItsParents) {
  const TempDir folder;
  EXPECT_GT(free_disk_bytes(folder / "not" / "yet" / "there"), 0);
  EXPECT_GT(free_disk_bytes("relative-and-absent"), 0);
}

TEST(Files, TempDirGoesWithItsContents) {
  fs::path path;
  {
    const TempDir folder;
    path = folder.path();
    write_file_atomic(folder / "x", "x");
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace wam
