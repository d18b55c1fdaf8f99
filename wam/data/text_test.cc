// Instructions to prompts and token ids, against Python's results (text_golden.inc) and the ids of
// the SentencePiece library.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "wam/base/error.h"
#include "wam/data/embodiment.h"
#include "wam/data/prompt.h"
#include "wam/data/python_literal.h"
#include "wam/data/text_clean.h"
#include "wam/data/tokenizer.h"

namespace wam::data {
namespace {

struct TextCase {
  std::string_view text, want;
};

#include "wam/data/text_golden.inc"

TEST(TextClean, EqualsTheReference) {
  for (const TextCase& c : kCleanCases) EXPECT_EQ(clean_prompt(c.text), c.want) << c.text;
}

TEST(TextClean, IsStable) {
  for (const TextCase& c : kCleanCases) {
    const std::string once = fix_text(c.text);
    EXPECT_EQ(fix_text(once), once) << c.text;
  }
}

TEST(TextClean, LowerCaseEqualsPython) {
  for (const TextCase& c : kLowerCases) EXPECT_EQ(lower_case(c.text), c.want) << c.text;
}

TEST(TextClean, RefusesWhatIsNotUtf8) {
  for (const char* bad : {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\xaf"}) {
    EXPECT_THROW(clean_prompt(bad), DataError);
  }
}

TEST(PythonLiteral, EqualsPython) {
  for (const TextCase& c : kLiteralCases) EXPECT_EQ(literal_instruction(c.text), c.want) << c.text;
}

TEST(PythonLiteral, EmptyListsHoldNoInstruction) {
  EXPECT_THROW(literal_instruction("[]"), DataError);
  EXPECT_THROW(literal_instruction(" ( ) "), DataError);
}

TEST(PythonLiteral, DeepNestingIsText) {
  const std::string deep(100000, '[');
  EXPECT_EQ(literal_instruction(deep), deep);
}

TEST(PythonLiteral, DictsKeepTheirSource) {
  EXPECT_EQ(literal_instruction("{'a': [1,  2]}"), "{'a': [1,  2]}");
  EXPECT_EQ(literal_instruction("b'x'"), "b'x'");
}

TEST(Prompt, FillsEveryPlaceInLowerCase) {
  EXPECT_EQ(make_prompt("A robot {i} The robot {i}", "['Pick Up  the CUP']"),
            "A robot pick up the cup The robot pick up the cup");
  EXPECT_EQ(make_prompt("{i}", "say {i}"), "say {i}");
}

TEST(Prompt, LiberoSentence) {
  EXPECT_EQ(make_prompt(embodiment_preset("libero_sim").prompt_template, "Open the drawer"),
            "A multi-view video shows that a robot open the drawer The video is split into two "
            "horizontal views: the left view shows the exterior camera and the right view shows "
            "the wrist camera. The robot open the drawer");
}

TEST(Prompt, Blankness) {
  EXPECT_TRUE(is_blank_instruction("  "));
  EXPECT_TRUE(is_blank_instruction("''"));
  EXPECT_FALSE(is_blank_instruction("x"));
}

TEST(Tokenizer, BytesAreDeterministic) {
  const auto tokenizer = make_tokenizer({.kind = "bytes", .path = {}, .max_tokens = 5});
  EXPECT_EQ(tokenizer->encode("ab"), (std::vector<int32_t>{100, 101, 1}));
  EXPECT_EQ(tokenizer->encode("\xff"), (std::vector<int32_t>{258, 1}));
  EXPECT_EQ(tokenizer->encode("abcdef"), (std::vector<int32_t>{100, 101, 102, 103, 1}));
  EXPECT_EQ(tokenizer->vocab_size(), 259);
}

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Tokenizer, ErrorsSayTheRemedy) {
  const auto error = [](TokenizerOptions options) {
    return error_of([&] { make_tokenizer(options); });
  };
  EXPECT_NE(error({}).find("spiece.model"), std::string::npos);
  EXPECT_NE(error({.path = "/nonexistent/spiece.model"}).find("does not exist"), std::string::npos);
  EXPECT_NE(error({.kind = "byte"}).find("'bytes'"), std::string::npos);
  EXPECT_NE(error({.kind = "bytes", .path = {}, .max_tokens = 0}).find("at least 1"),
            std::string::npos);
}

TEST(Tokenizer, RefusesAFileThatIsNoModel) {
  const auto path =
      std::filesystem::temp_directory_path() / ("wam_spm_" + std::to_string(getpid()));
  for (const char* text : {"", "not a model", "\x0a\xff\xff\xff\xff\x0f"}) {
    std::ofstream(path) << text;
    EXPECT_THROW(make_tokenizer({.path = path}), DataError);
  }
  std::filesystem::remove(path);
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

struct Model {
  const char* ids;   // file of expected ids under spm_golden
  const char* path;  // model under the data folder
};

class SpmGolden : public testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    const char* root = std::getenv("WAM_DATA_DIR");
    if (root == nullptr ||
        !std::filesystem::exists(std::filesystem::path(root) / GetParam().path)) {
      GTEST_SKIP() << "WAM_DATA_DIR has no " << GetParam().path;
    }
    root_ = root;
  }
  std::filesystem::path root_;
};

TEST_P(SpmGolden, IdsOfEveryLine) {
  const auto folder = root_ / "derived" / "spm_golden";
  const auto inputs = read_lines(folder / "inputs.txt"),
             wanted = read_lines(folder / GetParam().ids);
  ASSERT_EQ(inputs.size(), wanted.size());
  ASSERT_FALSE(inputs.empty());
  const auto tokenizer = make_tokenizer({.path = root_ / GetParam().path});
  const auto short_one = make_tokenizer({.path = root_ / GetParam().path, .max_tokens = 4});
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::istringstream row(wanted[i]);
    std::vector<int32_t> want{std::istream_iterator<int32_t>(row), {}};
    want.push_back(tokenizer->eos_id());
    EXPECT_EQ(tokenizer->encode(inputs[i]), want) << inputs[i];
    if (want.size() > 4) {
      want.resize(3);
      want.push_back(tokenizer->eos_id());
    }
    EXPECT_EQ(short_one->encode(inputs[i]), want) << inputs[i];
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, SpmGolden,
    testing::Values(Model{"bytefallback_unigram.model.ids.txt",
                          "derived/spm_golden/bytefallback_unigram.model"},
                    Model{"google_sentencepiece_python_test_test_ja_model.model.ids.txt",
                          "sentencepiece/google_sentencepiece/python/test/test_ja_model.model"},
                    Model{"google_sentencepiece_python_test_test_model.model.ids.txt",
                          "sentencepiece/google_sentencepiece/python/test/test_model.model"},
                    Model{"pytorch_text_t5_tokenizer_base.model.ids.txt",
                          "sentencepiece/pytorch_text/t5_tokenizer_base.model"}));

}  // namespace
}  // namespace wam::data
