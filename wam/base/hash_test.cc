#include "wam/base/hash.h"

#include <gtest/gtest.h>

#include "wam/base/files.h"
#include "wam/base/log.h"
#include "wam/base/quote.h"

namespace wam {
namespace {

// Examples published with FIPS 180-4.
TEST(Hash, Sha256KnownValues) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Hash, StreamingEqualsWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 37);
  for (size_t step : {1u, 7u, 63u, 64u, 65u, 400u}) {
    Sha256 sha;
    Hash64 xxh;
    for (size_t i = 0; i < text.size(); i += step) {
      sha.update(std::string_view(text).substr(i, step));
      xxh.update(std::string_view(text).substr(i, step));
    }
    EXPECT_EQ(sha.hex(), sha256_hex(text)) << step;
    EXPECT_EQ(xxh.digest(), hash64(text)) << step;
  }
}

TEST(Hash, DigestLeavesTheStateUsable) {
  Sha256 hash;
  hash.update("a");
  hash.hex();
  hash.update("bc");
  EXPECT_EQ(hash.hex(), sha256_hex("abc"));
}

// XXH3_64bits of the empty input, as published with the algorithm's specification.
TEST(Hash, Xxh3KnownValue) {
  EXPECT_EQ(hex64(hash64("")), "2d06800538d394c2");
  EXPECT_EQ(hex64(0xABCu), "0000000000000abc");
}

TEST(Hash, OfFiles) {
  const TempDir folder;
  write_file_atomic(folder / "a", "abc");
  EXPECT_EQ(file_sha256_hex(folder / "a"), sha256_hex("abc"));
  EXPECT_EQ(file_hash64(folder / "a"), hash64("abc"));
}

TEST(Quote, EscapesAndCuts) {
  EXPECT_EQ(quote("a b"), "'a b'");
  EXPECT_EQ(quote("a\n'\\\xff"), R"('a\x0a\'\\\xff')");
  EXPECT_EQ(quote("abcdef", 3), "'abc...'");
}

TEST(Quote, Utf8) {
  EXPECT_TRUE(is_valid_utf8("plain, \xc3\xa4, \xe2\x82\xac, \xf0\x9f\x98\x80"));
  EXPECT_TRUE(is_valid_utf8(std::string_view("\0", 1)));
  for (std::string_view bad :
       {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", "\xe2\x82",
        "\xff", "\xf0\x80\x80\x80"}) {
    EXPECT_FALSE(is_valid_utf8(bad)) << quote(bad);
  }
}

TEST(Log, LevelsAndText) {
  testing::internal::CaptureStderr();
  log_info("loaded {} 100%");
  log_debug("unseen");
  set_log_level(LogLevel::kError);
  EXPECT_EQ(log_level(), LogLevel::kError);
  log_warn("unseen");
  log_error("seen");
  set_log_level(LogLevel::kInfo);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("info: loaded {} 100%"), std::string::npos) << text;
  EXPECT_NE(text.find("error: seen"), std::string::npos) << text;
  EXPECT_EQ(text.find("unseen"), std::string::npos) << text;
}

}  // namespace
}  // namespace wam
