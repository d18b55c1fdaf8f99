// Frames by number against a plain decode from the start, in every order of access, and against
// frames that torchcodec's authors keep as golden.
#include "wam/data/video_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/hash.h"
#include "wam/base/philox.h"
#include "wam/data/video_testing.h"
#include "wam/tensor/archive.h"

#ifdef __SANITIZE_ADDRESS__
// libx265 keeps a few bytes of its parameters at exit.
extern "C" const char* __lsan_default_suppressions() { return "leak:libx265\n"; }
#endif

namespace wam::data {
namespace {

namespace fs = std::filesystem;

uint64_t hash_picture(const HostTensor& pictures, int64_t i) {
  const auto bytes = std::as_bytes(pictures.as<uint8_t>());
  const size_t size = bytes.size() / static_cast<size_t>(pictures.shape()[0]);
  return hash64(bytes.subspan(static_cast<size_t>(i) * size, size));
}

// Reads `frames` in one call and checks every picture.
void expect_frames(VideoReader& reader, const fs::path& path, const std::vector<int64_t>& frames,
                   const std::vector<uint64_t>& expected, const std::string& label) {
  const HostTensor pictures = reader.read(path, frames);
  for (size_t i = 0; i < frames.size(); ++i) {
    ASSERT_EQ(hash_picture(pictures, static_cast<int64_t>(i)),
              expected[static_cast<size_t>(frames[i])])
        << path << " " << label << ", frame " << frames[i];
  }
}

std::vector<int64_t> all_frames(size_t count) {
  std::vector<int64_t> frames(count);
  std::iota(frames.begin(), frames.end(), int64_t{0});
  return frames;
}

void check_every_order(const fs::path& path, int stream = -1) {
  const std::vector<uint64_t> expected = hash_all_frames(path, stream);
  VideoReader reader(nullptr, 2, stream);
  const auto count = static_cast<int64_t>(expected.size());
  ASSERT_EQ(reader.index(path)->num_frames(), count) << path;
  Random random(7, RandomUse::kTest, 0, static_cast<uint64_t>(count));
  std::vector<int64_t> frames = all_frames(expected.size());
  // Large pictures get fewer rounds: the orders matter, not their number.
  const VideoStreamInfo& info = reader.index(path)->info();
  const int64_t rounds = info.width * info.height > 200000 ? 2 : 12;
  if (count <= 120) expect_frames(reader, path, frames, expected, "all at once");
  // One call a frame: forward, then jumping.
  for (int64_t frame = 0; frame < std::min<int64_t>(count, 3 * rounds); ++frame) {
    expect_frames(reader, path, {frame}, expected, "one by one");
  }
  for (int i = 0; i < rounds; ++i) {
    const auto frame = static_cast<int64_t>(random.below(static_cast<uint64_t>(count)));
    expect_frames(reader, path, {frame}, expected, "jumping");
  }
  // Clips as training draws them, shuffled batches with repeats, reverse.
  for (int i = 0; i < (rounds + 3) / 4; ++i) {
    std::vector<int64_t> clip;
    const auto first = static_cast<int64_t>(random.below(static_cast<uint64_t>(count)));
    for (int64_t k = 0; k < 33 && first + 3 * k < count; ++k) clip.push_back(first + 3 * k);
    expect_frames(reader, path, clip, expected, "every third");
  }
  std::vector<int64_t> shuffled;
  for (int i = 0; i < 2 * rounds; ++i) {
    shuffled.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(count))));
  }
  shuffled.push_back(shuffled.front());
  expect_frames(reader, path, shuffled, expected, "shuffled with repeats");
  std::vector<int64_t> reverse(frames.rbegin(),
                               frames.rbegin() + std::min<int64_t>(count, 2 * rounds));
  for (const int64_t frame : reverse) expect_frames(reader, path, {frame}, expected, "reverse");
}

#define REQUIRE_REAL_DATA(folder)             \
  const fs::path folder = real_data_folder(); \
  if (folder.empty()) GTEST_SKIP() << "WAM_DATA_DIR names no folder of real data"

TEST(VideoReaderTest, GeneratedVideosOfEveryCodecInEveryOrder) {
  const TempDir temp;
  struct Case {
    const char* name;
    VideoWriterOptions options;
  };
  const Case cases[] = {
      {"h264_gop2", {.codec = "h264", .gop = 2}},
      {"h264_gop12_b", {.codec = "h264", .gop = 12, .b_frames = 3}},
      {"h264_gop250_b", {.codec = "h264", .gop = 250, .b_frames = 2}},
      {"hevc_b", {.codec = "hevc", .gop = 12, .b_frames = 3}},
      {"av1", {.codec = "av1", .gop = 2}},
      {"av1_long", {.codec = "av1", .gop = 30}},
      {"vp9", {.codec = "vp9", .gop = 12}},
      {"mpeg4_b", {.codec = "mpeg4", .gop = 10, .b_frames = 2}},
      {"h264_444", {.codec = "h264", .gop = 12, .b_frames = 2, .pixel_format = "yuv444p"}},
      {"h264_10bit", {.codec = "h264", .gop = 12, .b_frames = 2, .pixel_format = "yuv420p10le"}},
  };
  for (const Case& test : cases) {
    const fs::path path = temp / (std::string(test.name) + ".mp4");
    write_test_video(path, 96, 64, 70, 15.0, test.options);
    check_every_order(path);
    if (HasFatalFailure()) return;
  }
}

TEST(VideoReaderTest, OddSizeMatchesItsOwnPlainDecode) {
  const TempDir temp;
  const fs::path path = temp / "odd.mp4";
  write_test_video(path, 67, 49, 20, 15.0, {.gop = 8, .b_frames = 2, .pixel_format = "yuv444p"});
  check_every_order(path);
}

TEST(VideoReaderTest, EveryTorchcodecClipInEveryOrder) {
  REQUIRE_REAL_DATA(folder);
  const fs::path clips = folder / "torchcodec_test_resources/test/resources";
  if (!fs::is_directory(clips)) GTEST_SKIP() << "absent: " << clips;
  int count = 0;
  for (const auto& entry : fs::directory_iterator(clips)) {
    const std::string ending = entry.path().extension().string();
    if (ending != ".mp4" && ending != ".mkv" && ending != ".webm" && ending != ".avi") continue;
    check_every_order(entry.path());
    if (HasFatalFailure()) return;
    ++count;
  }
  EXPECT_EQ(count, 19);
  check_every_order(clips / "nasa_13013.mp4", 0);
}

TEST(VideoReaderTest, RobotClipsInEveryOrder) {
  REQUIRE_REAL_DATA(folder);
  for (const char* name :
       {"gr1_picknplace_v20/videos/chunk-000/observation.images.ego_view/episode_000004.mp4",
        "cr5_v21_av1/videos/chunk-000/observation.images.top/episode_000000.mp4",
        "dreamzero_droid_clips/debug_image/wrist_image_left.mp4",
        "groot_demo_meta/examples/LIBERO/patches/episode_000082.mp4"}) {
    const fs::path path = folder / name;
    if (!fs::exists(path)) GTEST_SKIP() << "absent: " << path;
    check_every_order(path);
    if (HasFatalFailure()) return;
  }
}

struct Golden {
  const char* clip;
  int stream;
  int64_t frame;
};

// libswscale with torchcodec's settings (bilinear, the stream's matrix and range) on the same
// architecture repeats torchcodec's arithmetic, so the frames are equal to the bit. Another CPU
// architecture may take other SIMD paths of libswscale, which round the colour matrix differently.
TEST(VideoReaderTest, TorchcodecGoldenFramesAreEqual) {
  REQUIRE_REAL_DATA(folder);
  const fs::path clips = folder / "torchcodec_test_resources/test/resources";
  if (!fs::is_directory(clips)) GTEST_SKIP() << "absent: " << clips;
  const Golden goldens[] = {
      {"nasa_13013.mp4", 0, 0},  {"nasa_13013.mp4", 0, 1},  {"nasa_13013.mp4", 3, 0},
      {"nasa_13013.mp4", 3, 1},  {"nasa_13013.mp4", 3, 2},  {"nasa_13013.mp4", 3, 5},
      {"nasa_13013.mp4", 3, 10}, {"nasa_13013.mp4", 3, 35}, {"nasa_13013.mp4", 3, 389},
      {"av1_video.mkv", 0, 10},  {"h265_video.mp4", 0, 5},
  };
  int largest = 0;
  for (const Golden& golden : goldens) {
    char suffix[64];
    std::snprintf(suffix, sizeof(suffix), ".stream%d.frame%06d.pt", golden.stream,
                  static_cast<int>(golden.frame));
    const auto archive = open_tensor_archive(clips / (golden.clip + std::string(suffix)));
    const HostTensor expected = archive->load(archive->names().front());
    VideoReader reader(nullptr, 1, golden.stream);
    const HostTensor got = reader.read(clips / golden.clip, std::array{golden.frame});
    ASSERT_EQ(got.num_elements(), expected.num_elements()) << golden.clip;
    const auto a = got.as<uint8_t>(), b = expected.as<uint8_t>();
    for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  std::printf("largest difference to torchcodec's golden frames: %d of 255\n", largest);
  EXPECT_EQ(largest, 0);
}

TEST(VideoReaderTest, RotationIsApplied) {
  REQUIRE_REAL_DATA(folder);
  const fs::path path = folder / "torchcodec_test_resources/test/resources/nasa_13013_rotated.mp4";
  if (!fs::exists(path)) GTEST_SKIP() << "absent: " << path;
  const auto index = VideoIndex::build(path);
  EXPECT_EQ(index->info().rotation, 270);  // 90 degrees counter-clockwise
  EXPECT_EQ(index->info().width, 270);
  EXPECT_EQ(index->info().height, 480);
}

TEST(VideoReaderTest, IndexTellsTimesAndSizes) {
  const TempDir temp;
  const fs::path path = temp / "v.mp4";
  write_test_video(path, 64, 48, 21, 20.0, {.gop = 5, .b_frames = 2});
  const auto index = VideoIndex::build(path);
  EXPECT_EQ(index->info().num_frames, 21);
  EXPECT_EQ(index->info().width, 64);
  EXPECT_EQ(index->info().height, 48);
  EXPECT_EQ(index->info().codec, "h264");
  EXPECT_NEAR(index->info().fps, 20.0, 1e-9);
  EXPECT_NEAR(index->timestamp(20) - index->timestamp(0), 1.0, 1e-9);
}

TEST(VideoReaderTest, PicturesComeBackAsWritten) {
  const TempDir temp;
  const fs::path path = temp / "v.mp4";
  write_test_video(path, 64, 48, 10, 20.0, {.gop = 5, .crf = 1, .pixel_format = "yuv444p"});
  const HostTensor pictures = VideoReader().read(path, all_frames(10));
  double worst = 0;
  for (int64_t frame = 0; frame < 10; ++frame) {
    const std::vector<uint8_t> expected = test_picture(64, 48, frame);
    double error = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error +=
          std::abs(int{expected[i]} -
                   int{pictures.as<uint8_t>()[static_cast<size_t>(frame) * expected.size() + i]});
    }
    worst = std::max(worst, error / static_cast<double>(expected.size()));
  }
  // Near-lossless 4:4:4; frames differ from each other by far more than three grey levels.
  EXPECT_LT(worst, 3.0);
}

TEST(VideoReaderTest, DisposablePicturesAreJumpedOver) {
  const TempDir temp;
  const fs::path path = temp / "v.mp4";
  write_test_video(path, 96, 64, 100, 20.0, {.gop = 250, .b_frames = 2});
  VideoReader reader;
  std::vector<int64_t> frames;
  for (int64_t frame = 0; frame < 99; frame += 3) frames.push_back(frame);
  reader.read(path, frames);
  EXPECT_GT(reader.counts().packets_skipped, 20);
  EXPECT_LT(reader.counts().packets_decoded, 80);
}

TEST(VideoReaderTest, KeyFramesAheadAreJumpedTo) {
  const TempDir temp;
  const fs::path path = temp / "v.mp4";
  write_test_video(path, 96, 64, 100, 20.0, {.gop = 10});
  VideoReader reader;
  reader.read(path, std::array<int64_t, 3>{90, 10, 51});
  EXPECT_EQ(reader.counts().packets_decoded, 4);  // key 10; key 50, 51; key 90
}

TEST(VideoReaderTest, ReadingOnDoesNotStartAgain) {
  const TempDir temp;
  const fs::path path = temp / "v.mp4";
  write_test_video(path, 96, 64, 100, 20.0, {.gop = 250, .b_frames = 2});
  VideoReader reader;
  for (int64_t frame = 0; frame < 100; ++frame) reader.read(path, std::array{frame});
  EXPECT_LT(reader.counts().packets_decoded, 130);
}

TEST(VideoReaderTest, OneByOneGivesTheSamePictures) {
  const TempDir temp;
  const fs::path path = temp / "v.mp4";
  write_test_video(path, 66, 48, 40, 20.0, {.gop = 12, .b_frames = 2});
  const std::vector<uint64_t> expected = hash_all_frames(path);
  const std::vector<int64_t> frames = {30, 3, 3, 0, 39, 17, 30};
  std::vector<int> seen(frames.size(), 0);
  VideoReader reader;
  reader.read_each(path, frames, [&](size_t place, std::span<const uint8_t> rgb) {
    ++seen.at(place);
    EXPECT_EQ(hash64(std::as_bytes(rgb)), expected[static_cast<size_t>(frames[place])]) << place;
  });
  EXPECT_EQ(seen, std::vector<int>(frames.size(), 1));
  EXPECT_THROW(reader.read_each(path, std::array<int64_t, 1>{40}, [](size_t, auto) {}), DataError);
}

TEST(VideoReaderTest, ManyFilesShareFewDecoders) {
  const TempDir temp;
  std::vector<fs::path> paths;
  for (int i = 0; i < 5; ++i) {
    paths.push_back(temp / ("v" + std::to_string(i) + ".mp4"));
    write_test_video(paths.back(), 64, 64, 12, 20.0,
                     {.codec = i % 2 == 0 ? "h264" : "mpeg4", .gop = 4});
  }
  VideoReader reader(std::make_shared<VideoIndexCache>(4000), 2);
  for (int round = 0; round < 3; ++round) {
    for (const fs::path& path : paths) {
      const std::vector<uint64_t> expected = hash_all_frames(path);
      expect_frames(reader, path, {7, 3, 11}, expected, "shared decoders");
    }
  }
  EXPECT_EQ(reader.counts().frames_delivered, 3 * 5 * 3);
}

// --- What bad input gets ---

std::string error_of(const fs::path& path, std::vector<int64_t> frames = {0}) {
  try {
    VideoReader().read(path, frames);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

void expect_error(const fs::path& path, const std::string& part,
                  std::vector<int64_t> frames = {0}) {
  const std::string error = error_of(path, std::move(frames));
  EXPECT_NE(error.find(part), std::string::npos) << "'" << error << "' lacks '" << part << "'";
  EXPECT_NE(error.find(path.filename().string()), std::string::npos) << error;
}

class DamagedVideoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_test_video(good_, 64, 64, 40, 20.0, {.gop = 8, .b_frames = 2});
    bytes_ = read_text_file(good_);
  }
  fs::path write(const std::string& bytes) {
    const fs::path path = temp_ / "bad.mp4";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  TempDir temp_;
  fs::path good_ = temp_ / "good.mp4";
  std::string bytes_;
};

TEST_F(DamagedVideoTest, Absent) { expect_error(temp_ / "none.mp4", "No such file"); }
TEST_F(DamagedVideoTest, Empty) { expect_error(write(""), "video is empty"); }
TEST_F(DamagedVideoTest, NotAVideo) {
  expect_error(write(std::string(5000, 'x')), "cannot be opened");
}
TEST_F(DamagedVideoTest, Folder) {
  fs::create_directory(temp_ / "folder.mp4");
  expect_error(temp_ / "folder.mp4", "not a regular file");
}

TEST_F(DamagedVideoTest, CutAnywhereIsSaid) {
  for (const double part : {0.01, 0.1, 0.3, 0.5, 0.9, 0.999}) {
    const auto length = static_cast<size_t>(static_cast<double>(bytes_.size()) * part);
    expect_error(write(bytes_.substr(0, length)), "cut short");
  }
}

TEST_F(DamagedVideoTest, FrameBeyondTheEnd) {
  expect_error(good_, "frame 40", {39, 40});
  expect_error(good_, "frame -1", {-1});
}

// Bytes turned over at random: a DataError or pictures, never a crash or a hang.
TEST_F(DamagedVideoTest, FlippedBytesNeverCrash) {
  Random random(3, RandomUse::kTest, 0, 0);
  int errors = 0;
  for (int round = 0; round < 150; ++round) {
    std::string bytes = bytes_;
    for (int i = 0; i < 4; ++i) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.next_u32());
    }
    errors += error_of(write(bytes), all_frames(40)).empty() ? 0 : 1;
  }
  EXPECT_GT(errors, 30);
}

TEST_F(DamagedVideoTest, FlippedTablesNeverCrash) {
  const size_t moov = bytes_.find("moov");
  const size_t mdat = bytes_.find("mdat");
  ASSERT_LT(moov, mdat);
  Random random(4, RandomUse::kTest, 0, 0);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = bytes_;
    bytes[moov + random.below(mdat - moov)] = static_cast<char>(random.next_u32());
    error_of(write(bytes), {0, 20, 39});
  }
}

TEST_F(DamagedVideoTest, WriterRefusesWhatCannotBeEncoded) {
  EXPECT_THROW(VideoWriter(temp_ / "a.mp4", 33, 32, 10), ConfigError);
  EXPECT_THROW(VideoWriter(temp_ / "a.mp4", 8, 8, 10), ConfigError);
  EXPECT_THROW(VideoWriter(temp_ / "a.mp4", 32, 32, 0), ConfigError);
  EXPECT_THROW(VideoWriter(temp_ / "a.mp4", 32, 32, 10, {.codec = "nonsense"}), ConfigError);
  EXPECT_THROW(VideoWriter(temp_ / "a.xyz", 32, 32, 10), ConfigError);
  EXPECT_THROW(VideoWriter(temp_ / "no_folder/a.mp4", 32, 32, 10), DataError);
}

TEST_F(DamagedVideoTest, UnfinishedWriterLeavesNothing) {
  {
    VideoWriter writer(temp_ / "a.mp4", 32, 32, 10);
    writer.write(test_picture(32, 32, 0));
  }
  int count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(temp_.path())) ++count;
  EXPECT_EQ(count, 1);  // good.mp4
}

TEST_F(DamagedVideoTest, SamePicturesGiveTheSameBytes) {
  for (const char* name : {"one.mp4", "two.mp4"}) {
    write_test_video(temp_ / name, 64, 64, 40, 20.0, {.gop = 8});
  }
  EXPECT_TRUE(read_text_file(temp_ / "one.mp4") == read_text_file(temp_ / "two.mp4"));
}

}  // namespace
}  // namespace wam::data
