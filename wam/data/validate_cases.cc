#include "wam/data/validate_cases.h"

#include <fstream>

#include "wam/base/files.h"
#include "wam/data/video_testing.h"

namespace wam::data {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr Severity kWarning = Severity::kWarning;

void write_plain_video(const fs::path& path, int num_frames, bool is_black) {
  VideoWriter writer(path, 64, 48, 10);
  const std::vector<uint8_t> picture(64 * 48 * 3, is_black ? 0 : 90);
  for (int i = 0; i < num_frames; ++i) {
    writer.write(i % 13 == 0 && !is_black ? test_picture(64, 48, i) : picture);
  }
  writer.finish();
}

}  // namespace

void Spoiler::info(const std::function<void(json&)>& edit) const {
  edit_json(root / "meta/info.json", edit);
}

void Spoiler::table(int64_t episode,
                    const std::function<void(std::vector<ParquetColumnData>&)>& edit) const {
  edit_table(root, options, episode, edit);
}

fs::path Spoiler::video(int64_t episode) const {
  return test_video_path(root, episode, options.cameras[0]);
}

void Spoiler::append(const char* meta_file, const std::string& text) const {
  std::ofstream(root / "meta" / meta_file, std::ios::app) << text;
}

void Spoiler::scribble(const fs::path& path, double place, size_t count) const {
  std::string bytes = read_text_file(path);
  const auto at = static_cast<size_t>(place * static_cast<double>(bytes.size()));
  for (size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<char>(17 * i + 3);
  write_text(path, bytes);
}

void Spoiler::cut(const fs::path& path, double share) const {
  const std::string bytes = read_text_file(path);
  write_text(path, bytes.substr(0, static_cast<size_t>(share * static_cast<double>(bytes.size()))));
}

void fill(std::vector<ParquetColumnData>& columns, const std::string& name, int64_t from,
          int64_t to, double value) {
  HostTensor& numbers = find_numbers(columns, name);
  for (int64_t i = from; i < to; ++i) {
    if (numbers.dtype() == DType::kI64) {
      numbers.as<int64_t>()[static_cast<size_t>(i)] = static_cast<int64_t>(value);
    } else {
      numbers.as<float>()[static_cast<size_t>(i)] = static_cast<float>(value);
    }
  }
}

std::vector<FaultCase> picture_fault_cases() {
  return {
      {"camera absent",
       {"camera-absent"},
       [](const Spoiler& s) { fs::remove_all(s.video(0).parent_path()); }},
      {"camera shape",
       {"camera-shape"},
       [](const Spoiler& s) {
         s.info([&](json& i) { i["features"][s.options.cameras[0]]["shape"] = {48, 64}; });
       }},
      {"video missing", {"video-missing"}, [](const Spoiler& s) { fs::remove(s.video(1)); }, 1},
      {"video empty", {"video-empty"}, [](const Spoiler& s) { write_text(s.video(1), ""); }, 1},
      {"video cut", {"video-cut"}, [](const Spoiler& s) { s.cut(s.video(1), 0.8); }, 1},
      {"no video",
       {"video-unreadable"},
       [](const Spoiler& s) { write_text(s.video(1), std::string(900, 'x')); },
       1},
      {"fewer frames",
       {"video-frames"},
       [](const Spoiler& s) { write_test_video(s.video(1), 64, 48, 19, 10, {}); },
       1},
      {"more frames",
       {"video-frames"},
       [](const Spoiler& s) { write_test_video(s.video(1), 64, 48, 21, 10, {}); },
       1,
       -1,
       kWarning},
      {"other size",
       {"video-size"},
       [](const Spoiler& s) { write_test_video(s.video(1), 48, 64, 20, 10, {}); },
       1},
      {"other fps",
       {"video-fps"},
       [](const Spoiler& s) { write_test_video(s.video(1), 64, 48, 20, 30, {}); },
       1,
       -1,
       kWarning},
      {"other codec",
       {"video-codec"},
       [](const Spoiler& s) { write_test_video(s.video(1), 64, 48, 20, 10, {.codec = "mpeg4"}); },
       1,
       -1,
       kWarning},
      {"damaged picture",
       {"picture-damaged"},
       [](const Spoiler& s) { s.scribble(s.video(1), 0.7, 200); },
       1},
      {"black pictures",
       {"picture-black", "picture-frozen"},
       [](const Spoiler& s) { write_plain_video(s.video(1), 20, true); },
       1,
       0,
       kWarning},
      {"frozen pictures",
       {"picture-frozen"},
       [](const Spoiler& s) { write_plain_video(s.video(1), 20, false); },
       1,
       1,
       kWarning},
  };
}

}  // namespace wam::data
