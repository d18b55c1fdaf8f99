#include "wam/base/strings.h"

#include <gtest/gtest.h>

namespace wam {
namespace {

using Names = std::vector<std::string>;

TEST(Strings, SplitKeepsEmptyPieces) {
  EXPECT_EQ(split("a,,b,", ','), (Names{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (Names{""}));
}

TEST(Strings, JoinUndoesSplit) { EXPECT_EQ(join(split("a,,b,", ','), ","), "a,,b,"); }

TEST(Strings, TrimTakesAsciiSpaceOnly) {
  EXPECT_EQ(trim(" \t\r\n a b \f"), "a b");
  EXPECT_EQ(trim("  "), "");
}

TEST(Strings, BytesHaveThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes((int64_t{1} << 20) - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(int64_t{33} << 30), "33.0 GiB");
  EXPECT_EQ(format_bytes(int64_t{512} << 20), "512 MiB");
  EXPECT_EQ(format_bytes(-1536), "-1.50 KiB");
}

TEST(Strings, EditDistanceCountsASwapOnce) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("taht", "that"), 1);
}

TEST(Strings, NearestNameIgnoresCase) {
  const Names names = {"micro_batch_size", "global_batch_size", "seed"};
  EXPECT_EQ(nearest_name("micro_bacth_size", names), "micro_batch_size");
  EXPECT_EQ(nearest_name("SEED", names), "seed");
  EXPECT_EQ(nearest_name("x", Names{}), "");
}

TEST(Strings, HintListsNamesWhenNothingIsNear) {
  const Names names = {"alpha", "beta"};
  EXPECT_EQ(name_hint("alhpa", names), "Did you mean 'alpha'?");
  EXPECT_EQ(name_hint("zzzzzz", names), "Valid: alpha, beta.");
  EXPECT_EQ(name_hint("a", Names{}), "");
}

}  // namespace
}  // namespace wam
