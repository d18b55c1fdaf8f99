// info.json's "data_path" and "video_path": text with fields such as {episode_index:06d}. A
// template comes from a file somebody else wrote: it may only name places inside the dataset's
// folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace wam::data {

// Values of a template's fields; fields not used by the template do not matter.
struct PathFields {
  int64_t episode_index = 0, episode_chunk = 0;
  int64_t chunk_index = 0, file_index = 0;
  std::string video_key, image_key;
};

class PathTemplate {
 public:
  PathTemplate() = default;
  // Throws DataError at `where`: unknown fields or formats, unclosed braces, an absolute path, or
  // ".." as a part.
  PathTemplate(std::string text, const std::string& where);
  const std::string& text() const { return text_; }
  bool empty() const { return parts_.empty(); }
  // The relative path. Throws DataError if a value makes it leave the folder.
  std::filesystem::path expand(const PathFields& fields) const;

 private:
  struct Part {
    std::string literal;  // text, or the field's name
    bool is_field = false;
    int digits = 0;  // zero-padded to at least this many
  };
  Part parse_field(std::string_view inside) const;
  std::string text_, where_;
  std::vector<Part> parts_;
};

// Throws DataError at `where` unless `path` is relative and has no ".." part.
void require_inside(const std::filesystem::path& path, const std::string& where);

}  // namespace wam::data
