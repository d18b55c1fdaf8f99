#include "wam/train/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "wam/base/check.h"
#include "wam/base/files.h"
#include "wam/train/html_page.h"
#include "wam/train/html_text.h"

namespace wam::train {
namespace {

constexpr std::string_view kPngStart = "\x89PNG\r\n\x1a\n";
constexpr uint32_t kSmallPixels = 200;
constexpr uint32_t kMaxEnlargement = 8;

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

// Whether every cell of the column that is not empty is a number.
std::vector<bool> numeric_columns(size_t num_columns,
                                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<bool> numeric(num_columns, !rows.empty());
  for (const auto& row : rows) {
    for (size_t i = 0; i < num_columns; ++i)
      numeric[i] = numeric[i] && (row[i].empty() || is_number(row[i]));
  }
  return numeric;
}

std::string table_row(const char* tag, const std::vector<std::string>& cells,
                      const std::vector<bool>& numeric) {
  std::string html = "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    html += fmt::format("<{0}{1}>{2}</{0}>", tag, numeric[i] ? " class=\"n\"" : "",
                        escape_html(cells[i]));
  }
  return html + "</tr>\n";
}

// A size in the header chunk, which follows the signature.
uint32_t png_size(std::string_view png, size_t position) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(png[position + i]);
  return value;
}

}  // namespace

void HtmlReport::add_heading(std::string_view text) {
  body_ += "<h2>" + escape_html(text) + "</h2>\n";
}

void HtmlReport::add_paragraph(std::string_view text) {
  body_ += "<p>" + escape_html(text) + "</p>\n";
}

void HtmlReport::add_table(const std::vector<std::string>& header,
                           const std::vector<std::vector<std::string>>& rows) {
  for (const auto& row : rows) WAM_CHECK(row.size() == header.size()) << "cells of a table row";
  const std::vector<bool> numeric = numeric_columns(header.size(), rows);
  body_ += "<div class=\"table\"><table>\n<thead>" + table_row("th", header, numeric) +
           "</thead>\n<tbody>";
  for (const auto& row : rows) body_ += table_row("td", row, numeric);
  body_ += "</tbody></table></div>\n";
}

void HtmlReport::add_line_chart(const LineChart& chart) { body_ += render_line_chart(chart); }

void HtmlReport::add_image(std::string_view png, std::string_view caption) {
  WAM_CHECK(png.size() >= 24 && png.starts_with(kPngStart)) << "not a PNG: " << caption;
  const uint32_t width = png_size(png, 16), height = png_size(png, 20);
  const uint32_t longest = std::max({width, height, 1u});
  const uint32_t scale = std::clamp(kSmallPixels / longest, 1u, kMaxEnlargement);
  body_ += fmt::format(
      "<figure class=\"picture\"><figcaption>{0}</figcaption><div><img alt=\"{0}\" width=\"{1}\" "
      "height=\"{2}\" "
      "src=\"data:image/png;base64,{3}\"></div></figure>\n",
      escape_html(caption), uint64_t{width} * scale, uint64_t{height} * scale, base64(png));
}

std::string HtmlReport::to_html() const {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style></head>\n<body><main>\n<h1>{0}</h1>\n{2}</main>\n"
      "<script>{3}</script></body></html>\n",
      escape_html(title_), kPageStyle, body_, kPageScript);
}

void HtmlReport::write(const std::filesystem::path& path) const {
  write_file_atomic(path, to_html());
}

}  // namespace wam::train
