// The fuzzer's seeds and thousands of damaged ones through every reader: each is read or refused.
#include <gtest/gtest.h>

#include "tests/fuzz/targets.h"
#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/philox.h"

namespace wam::fuzz {
namespace {

// Empty, or what was thrown that should not be.
std::string finding(const Target& target, const std::string& input) {
  try {
    target.run(input);
  } catch (const DataError&) {
  } catch (const ConfigError&) {
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

class Replay : public ::testing::TestWithParam<Target> {};

TEST_P(Replay, Seeds) {
  for (const std::string& seed : seeds(GetParam().name)) EXPECT_EQ(finding(GetParam(), seed), "");
}

// What the fuzzer once found; see the folder's README.
TEST_P(Replay, Findings) {
  const std::filesystem::path folder = std::filesystem::path(WAM_FUZZ_FINDINGS) / GetParam().name;
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no findings for " << GetParam().name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_EQ(finding(GetParam(), read_text_file(entry.path())), "") << entry.path();
  }
}

TEST_P(Replay, CutAndFlipped) {
  Random random(7, RandomUse::kTest, 0, 0);
  for (const std::string& seed : seeds(GetParam().name)) {
    for (int round = 0; round < 18 && !seed.empty(); ++round) {
      std::string damaged = seed;
      const auto place = static_cast<size_t>(random.uniform() * static_cast<double>(seed.size()));
      if (round % 3 == 0) {
        damaged.resize(place);
      } else {
        damaged[place] = static_cast<char>(random.uniform() * 256);
      }
      EXPECT_EQ(finding(GetParam(), damaged), "") << "round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Replay, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace wam::fuzz
