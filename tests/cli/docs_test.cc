// Documents that list what the program has: they must list all of it, and nothing else.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <map>
#include <regex>
#include <set>

#include "tests/cli/run_wam.h"
#include "wam/base/files.h"
#include "wam/base/strings.h"
#include "wam/data/validate.h"
#include "wam/train/config.h"

namespace wam::cli_test {
namespace {

std::string document(const std::string& name) {
  return read_text_file(std::filesystem::path(WAM_SOURCE_DIR) / "docs" / name);
}

// Cells of the rows "| `...` | ...": without outer blanks.
std::vector<std::vector<std::string>> table_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (const std::string& cell : split(line.substr(1), '|')) cells.emplace_back(trim(cell));
    rows.push_back(cells);
  }
  return rows;
}

bool is_code(const std::string& cell) {
  return cell.size() > 2 && cell[0] == '`' && cell.back() == '`';
}
std::string code(const std::string& cell) { return cell.substr(1, cell.size() - 2); }

std::string default_text(const YAML::Node& node) {
  if (node.IsScalar()) return node.Scalar().empty() ? "\"\"" : node.Scalar();
  YAML::Emitter out;
  out << YAML::Flow << node;
  return out.c_str();
}

// "a.b" -> value, for every key that holds no further keys.
void flatten(const YAML::Node& node, const std::string& prefix,
             std::map<std::string, std::string>& out) {
  for (const auto& entry : node) {
    const std::string key = prefix + entry.first.Scalar();
    if (entry.second.IsMap()) {
      flatten(entry.second, key + ".", out);
    } else {
      out[key] = default_text(entry.second);
    }
  }
}

// Equal as text, or as numbers: the program writes 17 digits.
bool same_value(const std::string& a, const std::string& b) {
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  const bool numbers = *end_a == '\0' && *end_b == '\0' && !a.empty() && !b.empty();
  return a == b || (numbers && x == y);
}

TEST(ConfigDocument, ListsEveryKeyWithItsDefault) {
  std::map<std::string, std::string> keys;
  flatten(YAML::Load(train::to_yaml(train::TrainConfig{})), "", keys);
  // Read, but resolved when written.
  const std::set<std::string> extra = {"dataset.embodiment.preset",
                                       "dataset.embodiment.color_jitter"};
  std::set<std::string> listed;
  for (const std::vector<std::string>& row : table_rows(document("config.md"))) {
    if (row.size() < 5) continue;  // the parts of a slice
    const std::string key = code(row[0]);
    EXPECT_TRUE(listed.insert(key).second) << key << " twice";
    if (extra.contains(key)) continue;
    ASSERT_TRUE(keys.contains(key)) << key << " is not a key of the program";
    // "required" and other words stand without quotes and are not compared.
    if (is_code(row[2])) {
      EXPECT_TRUE(same_value(code(row[2]), keys[key]))
          << key << ": " << row[2] << ", is " << keys[key];
    }
  }
  for (const auto& [key, value] : keys)
    EXPECT_TRUE(listed.contains(key)) << key << " is not documented";
}

TEST(OpsDocument, IsWhatTheProgramPrints) {
  const RunResult result = run_wam({"ops", "--markdown"});
  ASSERT_TRUE(is_success(result));
  EXPECT_EQ(result.out, document("ops.md")) << "run: wam ops --markdown > docs/ops.md";
}

TEST(ErrorsDocument, ListsEveryFaultOfADataset) {
  std::map<std::string, std::string> listed;
  for (const std::vector<std::string>& row : table_rows(document("errors.md"))) {
    if (row.size() >= 2) listed[code(row[0])] = row[1];
  }
  for (const data::FaultKind& kind : data::fault_kinds()) {
    EXPECT_EQ(listed[std::string(kind.code)], kind.meaning) << kind.code;
  }
  EXPECT_EQ(listed.size(), data::fault_kinds().size());
}

// Links between the documents, and files of the repository that they name.
TEST(Documents, NameFilesThatExist) {
  const std::filesystem::path root = WAM_SOURCE_DIR;
  const std::regex link(R"(\]\(([^)#:]+)\))");
  for (const auto& entry : std::filesystem::directory_iterator(root / "docs")) {
    const std::string text = read_text_file(entry.path());
    for (auto it = std::sregex_iterator(text.begin(), text.end(), link);
         it != std::sregex_iterator(); ++it) {
      EXPECT_TRUE(std::filesystem::exists(root / "docs" / (*it)[1].str()))
          << entry.path().filename() << " links to " << (*it)[1];
    }
  }
}

}  // namespace
}  // namespace wam::cli_test
