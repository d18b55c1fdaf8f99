// The files a run leaves for people: metrics.jsonl and TensorBoard events.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/philox.h"
#include "wam/train/metrics_log.h"
#include "wam/train/proto_wire.h"
#include "wam/train/tfevents.h"
#include "wam/train/tfrecord.h"

namespace wam::train {
namespace {

namespace fs = std::filesystem;

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "got: " << text;
}

TEST(TfRecord, ChecksumKnownValues) {
  // RFC 3720, B.4: 32 bytes of zeros and of ones; "123456789" is the usual check value.
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

TEST(TfRecord, RoundTripAndCutTail) {
  const std::string file = frame_tfrecord("first") + frame_tfrecord("") + frame_tfrecord("third");
  const auto records = split_tfrecords(file, "f");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[2], "third");
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_LT(split_tfrecords(std::string_view(file).substr(0, size), "f").size(), 3u) << size;
  }
}

TEST(TfRecord, RefusesDamage) {
  const std::string file = frame_tfrecord("first") + frame_tfrecord("second");
  for (size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    expect_contains(error_of([&] { split_tfrecords(damaged, "f"); }), "stored checksum");
  }
}

// Examples of the format's own description: 150 as field 1 is 08 96 01, "testing" as field 2.
TEST(ProtoWire, KnownBytes) {
  EXPECT_EQ(ProtoWriter().integer(1, 150).message(), "\x08\x96\x01");
  EXPECT_EQ(ProtoWriter().bytes(2, "testing").message(), "\x12\x07testing");
  EXPECT_EQ(ProtoWriter().integer(1, -2).message(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(ProtoWire, DamageIsSeen) {
  const std::string message =
      ProtoWriter().integer(1, 1 << 20).real64(2, 1.5).bytes(3, "abc").real32(4, 2.5f).message();
  const auto is_whole = [](std::string_view bytes) {
    ProtoReader reader(bytes);
    while (reader.next()) {
    }
    return reader.is_whole();
  };
  std::vector<size_t> whole;
  for (size_t size = 0; size <= message.size(); ++size) {
    if (is_whole(std::string_view(message).substr(0, size))) whole.push_back(size);
  }
  EXPECT_EQ(whole, (std::vector<size_t>{0, 4, 13, 18, 23}));  // between fields
  EXPECT_FALSE(is_whole(std::string(20, '\xff')));
  EXPECT_FALSE(is_whole("\x03"));                                          // field number 0
  EXPECT_FALSE(is_whole("\x0b"));                                          // a group
  EXPECT_FALSE(is_whole("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));  // a length of 2^64 - 1
}

TEST(TfEvents, RoundTrip) {
  const TempDir folder;
  fs::path path;
  {
    TfEventsWriter writer(folder / "tb", 7);
    const std::vector<TaggedScalar> scalars = {{"train/loss", 0.25}, {"train/lr", 1e-5}};
    writer.add_scalars(7, scalars);
    writer.add_image(8, "frames", "PNGBYTES", 2, 3, 3);
    path = writer.path();
  }
  EXPECT_TRUE(path.filename().string().starts_with("events.out.tfevents."));
  const std::vector<TfEvent> events = read_tfevents(path);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_TRUE(events[1].is_session_start);
  EXPECT_EQ(events[1].step, 7);
  EXPECT_EQ(events[2].step, 7);
  EXPECT_GT(events[2].wall_time, 1.6e9);
  const std::vector<TaggedScalar> expected = {{"train/loss", 0.25},
                                              {"train/lr", static_cast<float>(1e-5)}};
  EXPECT_EQ(events[2].scalars, expected);
  ASSERT_EQ(events[3].images.size(), 1u);
  EXPECT_EQ(events[3].images[0].png, "PNGBYTES");
  EXPECT_EQ(events[3].images[0].height, 2);
}

TEST(TfEvents, EachStartHasItsOwnFile) {
  const TempDir folder;
  const TfEventsWriter first(folder.path()), second(folder.path());
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(read_tfevents(first.path()).size(), 1u);
  write_file_atomic(folder / "file", "x");
  expect_contains(error_of([&] { TfEventsWriter writer(folder / "file"); }),
                  "cannot make the folder");
}

TEST(TfEvents, DamagedCopiesAreReadOrRefused) {
  const TempDir folder;
  TfEventsWriter writer(folder.path());
  const std::vector<TaggedScalar> scalars = {{"a", 1.0}};
  writer.add_scalars(1, scalars);
  writer.add_image(2, "b", "PNG", 1, 1, 1);
  const std::string valid = read_text_file(writer.path());
  for (int i = 0; i < 500; ++i) {
    Random random(5, RandomUse::kTest, 0, static_cast<uint64_t>(i));
    // Framed anew, so that damage passes the checksum and reaches the event itself.
    std::string file;
    for (std::string_view record : split_tfrecords(valid, "f")) {
      std::string bytes(record);
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
      file += frame_tfrecord(bytes);
    }
    const fs::path path = folder / std::to_string(i);
    std::ofstream(path, std::ios::binary) << file;
    error_of([&] { read_tfevents(path); });
  }
}

MetricsRecord record_of(int64_t step, double loss) {
  return {.step = step, .fields = {{"loss", loss}, {"kind", std::string("train")}}};
}

TEST(MetricsLog, RoundTripWithNumbersJsonLacks) {
  const TempDir folder;
  {
    MetricsLog log(folder / "m.jsonl");
    log.write({.step = 1,
               .fields = {{"loss", 0.1},
                          {"nan", NAN},
                          {"up", INFINITY},
                          {"down", -INFINITY},
                          {"count", int64_t{3}},
                          {"skipped", true},
                          {"text", std::string("a \"b\"\n")}}});
    log.write(record_of(2, 5.0));
  }
  const std::string text = read_text_file(folder / "m.jsonl");
  EXPECT_EQ(
      text.substr(0, text.find('\n')),
      R"({"step":1,"loss":0.1,"nan":"nan","up":"inf","down":"-inf","count":3,"skipped":true,"text":"a \"b\"\n"})");
  const auto records = read_metrics_log(folder / "m.jsonl");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].number("loss"), 0.1);
  EXPECT_TRUE(std::isnan(*records[0].number("nan")));
  EXPECT_EQ(records[0].number("up"), INFINITY);
  EXPECT_EQ(records[0].number("down"), -INFINITY);
  EXPECT_EQ(records[0].number("count"), 3.0);
  EXPECT_EQ(records[0].number("skipped"), 1.0);
  EXPECT_EQ(records[0].text("text"), "a \"b\"\n");
  EXPECT_EQ(records[0].number("absent"), std::nullopt);
  EXPECT_EQ(records[1].step, 2);
}

TEST(MetricsLog, DoublesComeBackBitwise) {
  const TempDir folder;
  std::vector<double> values;
  {
    MetricsLog log(folder / "m");
    for (int i = 0; i < 500; ++i) {
      Random random(6, RandomUse::kTest, 0, static_cast<uint64_t>(i));
      values.push_back(
          std::ldexp(random.uniform() - 0.5, static_cast<int>(random.below(2000)) - 1000));
      log.write(record_of(i, values.back()));
    }
  }
  const auto records = read_metrics_log(folder / "m");
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(records[i].number("loss"), values[i]);
}

TEST(MetricsLog, ResumeRemovesLaterStepsAndTheTornLine) {
  const TempDir folder;
  {
    MetricsLog log(folder / "m");
    for (int i = 1; i <= 5; ++i) log.write(record_of(i, i));
  }
  write_file_atomic(folder / "m", read_text_file(folder / "m") + R"({"step":6,"lo)");
  EXPECT_EQ(read_metrics_log(folder / "m").size(), 5u);
  {
    MetricsLog log(folder / "m", 3);
    log.write(record_of(4, 40.0));
  }
  const auto records = read_metrics_log(folder / "m");
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[2].step, 3);
  EXPECT_EQ(records[3].number("loss"), 40.0);
  MetricsLog absent(folder / "absent", 3);
  EXPECT_TRUE(read_metrics_log(folder / "absent").empty());
}

TEST(MetricsLog, FreshRunDoesNotWriteOverAnEarlierOne) {
  const TempDir folder;
  { MetricsLog(folder / "m").write(record_of(1, 1)); }
  expect_contains(error_of([&] { MetricsLog log(folder / "m"); }), "earlier run");
  EXPECT_EQ(read_metrics_log(folder / "m").size(), 1u);
}

TEST(MetricsLog, RefusesDamageInTheMiddle) {
  const TempDir folder;
  const std::string good = metrics_line(record_of(1, 1)) + "\n";
  for (const char* bad :
       {"", "{}", "[]", "{\"step\":\"1\"}", "{\"step\":1.5}", "{\"step\":1,\"x\":[1]}",
        "{\"step\":1,\"x\":null}", "{\"step\":1,\"x\":{\"y\":1}}", "nonsense", "\xff"}) {
    write_file_atomic(folder / "m", good + bad + "\n" + good);
    expect_contains(error_of([&] { read_metrics_log(folder / "m"); }),
                    "line 2] not a record of metrics");
    expect_contains(error_of([&] { MetricsLog log(folder / "m", 1); }), "line 2]");
    EXPECT_EQ(read_text_file(folder / "m"), good + bad + "\n" + good);
  }
  write_file_atomic(folder / "m", "{\"step\":" + std::string(100000, '[') + "\n");
  expect_contains(error_of([&] { read_metrics_log(folder / "m"); }), "line 1]");
}

}  // namespace
}  // namespace wam::train
