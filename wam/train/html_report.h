// One self-contained HTML page: headings, text, tables, line charts and pictures, in order of
// adding. Nothing is fetched when it is opened; it is readable without its script, which only adds
// the values under the pointer.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "wam/train/line_chart.h"

namespace wam::train {

// All text is plain and gets escaped. Charts added one after the other stand side by side where
// there is room; everything else takes the whole width.
class HtmlReport {
 public:
  explicit HtmlReport(std::string title) : title_(std::move(title)) {}

  void add_heading(std::string_view text);
  void add_paragraph(std::string_view text);
  // Every row has as many cells as the header. Columns that hold numbers only are set flush right.
  void add_table(const std::vector<std::string>& header,
                 const std::vector<std::vector<std::string>>& rows);
  void add_line_chart(const LineChart& chart);
  // `png` is a whole PNG file (its start is checked: our bug otherwise). Small pictures are
  // enlarged by a whole number without smoothing; wide ones scroll.
  void add_image(std::string_view png, std::string_view caption);

  std::string to_html() const;
  // Whole or not at all; DataError as write_file_atomic.
  void write(const std::filesystem::path& path) const;

 private:
  std::string title_, body_;
};

}  // namespace wam::train
