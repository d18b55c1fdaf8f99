#include "wam/data/path_template.h"

#include <fmt/format.h>

#include <utility>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/coded_error.h"

namespace wam::data {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what, const std::string& got,
                       const std::string& expected) {
  throw DataError({.where = where,
                   .what = what,
                   .got = quote(got),
                   .expected = expected,
                   .remedy = "Correct the path template in meta/info.json."});
}

bool is_number_field(std::string_view name) {
  return name == "episode_index" || name == "episode_chunk" || name == "chunk_index" ||
         name == "file_index";
}

int64_t number_of(const PathFields& fields, std::string_view name) {
  if (name == "episode_index") return fields.episode_index;
  if (name == "episode_chunk") return fields.episode_chunk;
  if (name == "chunk_index") return fields.chunk_index;
  return fields.file_index;
}

}  // namespace

void require_inside(const std::filesystem::path& path, const std::string& where) {
  bool is_inside =
      !path.empty() && path.is_relative() && path.native().find('\0') == std::string::npos;
  for (const std::filesystem::path& part : path) is_inside = is_inside && part != "..";
  if (is_inside) return;
  throw CodedError("path-outside", {.where = where,
                                    .what = "path leaves the dataset's folder",
                                    .got = quote(path.string()),
                                    .expected = "a relative path without '..'",
                                    .remedy = "Correct the path in the dataset."});
}

PathTemplate::Part PathTemplate::parse_field(std::string_view inside) const {
  const size_t colon = inside.find(':');
  const std::string_view name = inside.substr(0, colon);
  const std::string_view format = colon == std::string_view::npos ? "" : inside.substr(colon + 1);
  if (is_number_field(name)) {
    if (format.empty() || format == "d") return {std::string(name), true, 0};
    const bool is_padded = format.size() == 3 && format[0] == '0' && format[2] == 'd' &&
                           format[1] >= '1' && format[1] <= '9';
    if (is_padded) return {std::string(name), true, format[1] - '0'};
  } else if ((name == "video_key" || name == "image_key") && format.empty()) {
    return {std::string(name), true, 0};
  }
  fail(where_, "unknown field in a path template", "{" + std::string(inside) + "}",
       "{episode_chunk:03d}, {episode_index:06d}, {video_key}, {chunk_index:03d}, "
       "{file_index:03d}");
}

PathTemplate::PathTemplate(std::string text, const std::string& where)
    : text_(std::move(text)), where_(where) {
  require_inside(text_, where_);
  std::string_view rest = text_;
  while (!rest.empty()) {
    const size_t open = rest.find('{');
    const std::string_view literal = rest.substr(0, open);
    if (literal.find('}') != std::string_view::npos) {
      fail(where_, "stray brace in a path template", text_, "{field}");
    }
    if (!literal.empty()) parts_.push_back({std::string(literal), false, 0});
    if (open == std::string_view::npos) break;
    const size_t close = rest.find('}', open);
    if (close == std::string_view::npos) {
      fail(where_, "unclosed brace in a path template", text_, "{field}");
    }
    parts_.push_back(parse_field(rest.substr(open + 1, close - open - 1)));
    rest.remove_prefix(close + 1);
  }
}

std::filesystem::path PathTemplate::expand(const PathFields& fields) const {
  std::string path;
  for (const Part& part : parts_) {
    if (!part.is_field) {
      path += part.literal;
    } else if (is_number_field(part.literal)) {
      path += fmt::format("{:0{}d}", number_of(fields, part.literal), part.digits);
    } else {
      path += part.literal == "video_key" ? fields.video_key : fields.image_key;
    }
  }
  require_inside(path, where_);
  return path;
}

}  // namespace wam::data
