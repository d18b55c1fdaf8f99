#include "wam/train/html_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/train/chart_axis.h"
#include "wam/train/html_text.h"

namespace wam::train {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// Every tag that is opened is closed in order; void and self-closing tags aside.
void expect_well_formed(const std::string& html) {
  std::vector<std::string> open;
  size_t at = html.find("<html");
  while ((at = html.find('<', at)) != std::string::npos) {
    const size_t end = html.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = html.substr(at + 1, end - at - 1);
    at = end;
    if (tag.ends_with('/') || tag.starts_with("meta") || tag.starts_with("img")) continue;
    if (tag[0] != '/') {
      open.push_back(tag.substr(0, tag.find_first_of(" \n")));
      // Scripts and styles are not markup.
      if (open.back() == "script" || open.back() == "style")
        at = html.find("</" + open.back(), at) - 1;
      continue;
    }
    ASSERT_FALSE(open.empty());
    ASSERT_EQ(open.back(), tag.substr(1));
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

ChartSeries wave(const std::string& name, size_t num_points) {
  ChartSeries series{.name = name};
  for (size_t i = 0; i < num_points; ++i) {
    series.xs.push_back(static_cast<double>(i));
    series.ys.push_back(std::sin(static_cast<double>(i) * 0.01) + 2);
  }
  return series;
}

std::vector<std::string> labels(const ChartAxis& axis, int num_ticks) {
  std::vector<std::string> result;
  for (const Tick& tick : axis.ticks(num_ticks)) result.push_back(tick.label);
  return result;
}

using Labels = std::vector<std::string>;

TEST(ChartAxis, LinearTicksAreRound) {
  EXPECT_EQ(labels({0, 10, false, 0}, 5), (Labels{"0", "2", "4", "6", "8", "10"}));
  EXPECT_EQ(labels({0.113, 0.187, false, 0}, 4), (Labels{"0.12", "0.14", "0.16", "0.18"}));
  EXPECT_EQ(labels({0, 250000, false, 0}, 5), (Labels{"0", "50k", "100k", "150k", "200k", "250k"}));
  EXPECT_EQ(labels({-1, 1, false, 0}, 4), (Labels{"-1.0", "-0.5", "0", "0.5", "1.0"}));
  EXPECT_EQ(labels({0, 1e-5, false, 0}, 5),
            (Labels{"0", "2e-06", "4e-06", "6e-06", "8e-06", "1e-05"}));
}

TEST(ChartAxis, LogTicks) {
  EXPECT_EQ(labels({1e-6, 1, true, 0}, 7),
            (Labels{"1e-6", "1e-5", "1e-4", "0.001", "0.01", "0.1", "1"}));
  EXPECT_EQ(labels({0.1, 10, true, 0}, 6), (Labels{"0.1", "0.2", "0.5", "1", "2", "5", "10"}));
  EXPECT_EQ(labels({3, 5, true, 0}, 6), (Labels{"3", "4", "5"}));
}

TEST(ChartAxis, ExtremeRangesEnd) {
  const double largest = std::numeric_limits<double>::max(),
               smallest = std::numeric_limits<double>::denorm_min();
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{{-largest, largest},
                                                                        {0, smallest},
                                                                        {1, 1 + 1e-15},
                                                                        {0, 0},
                                                                        {5, 5},
                                                                        {-largest, -largest},
                                                                        {1e300, 1.1e300}}) {
    for (int num_ticks : {1, 6}) EXPECT_LT(labels({low, high, false, 0.05}, num_ticks).size(), 25u);
  }
  for (const auto& [low, high] :
       std::vector<std::pair<double, double>>{{smallest, largest}, {1, 1}, {largest, largest}}) {
    const size_t n = labels({low, high, true, 0.05}, 6).size();
    EXPECT_LT(n, 25u);
  }
}

TEST(Decimate, KeepsExtremesAndOrder) {
  std::vector<double> ys(100000, 1.0);
  ys[12345] = 9;
  ys[54321] = -9;
  ys[77777] = NAN;
  const std::vector<size_t> kept = decimate(ys, 1600);
  EXPECT_LE(kept.size(), 2000u);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  for (size_t i : {size_t{0}, size_t{12345}, size_t{54321}, size_t{77777}, ys.size() - 1}) {
    EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), i)) << i;
  }
  EXPECT_EQ(decimate({1, 2, 3}, 1600).size(), 3u);
  EXPECT_TRUE(decimate({}, 1600).empty());
}

TEST(HtmlText, Escapes) {
  EXPECT_EQ(escape_html("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
  EXPECT_EQ(escape_html("\xc3\xa4\n"), "\xc3\xa4\n");
  EXPECT_EQ(escape_html(std::string_view("\xff\0\x1b", 3)), "\\xff\\x00\\x1b");
}

// Examples of RFC 4648, section 10.
TEST(HtmlText, Base64) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

TEST(LineChart, DrawsGapsAndSaysWhatIsMissing) {
  const std::string html = render_line_chart(
      {.title = "t", .log_y = true, .series = {{"s", {1, 2, 3, 4, 5, 6}, {1, 10, NAN, 5, 0, -1}}}});
  EXPECT_EQ(count(html, "<circle"), 3u);
  const size_t path = html.find("<g class=\"s0\">");
  const std::string data = html.substr(path, html.find("</g>", path) - path);
  EXPECT_EQ(count(data, "h0"), 2u) << data;  // two pieces
  EXPECT_NE(html.find("Not drawn: s: 1 not finite. s: 2 not positive."), std::string::npos) << html;
}

TEST(LineChart, NothingToDraw) {
  EXPECT_NE(render_line_chart({.title = "t"}).find("No values"), std::string::npos);
  EXPECT_NE(render_line_chart({.title = "t", .series = {{"s", {1}, {NAN}}}}).find("No values"),
            std::string::npos);
  EXPECT_EQ(render_line_chart({.title = "t", .series = {{"s", {1}, {1}}}}).find("No values"),
            std::string::npos);
}

TEST(LineChart, TwentySeriesDiffer) {
  LineChart chart{.title = "many"};
  for (int i = 0; i < 20; ++i) chart.series.push_back(wave("run " + std::to_string(i), 50));
  const std::string html = render_line_chart(chart);
  EXPECT_NE(html.find("class=\"s9 dash\""), std::string::npos);
  EXPECT_EQ(count(html, "<g class=\"s3\">"), 1u);
}

TEST(LineChart, LongSeriesStaySmallAndShowTheirMean) {
  const std::string html = render_line_chart({.title = "long", .series = {wave("s", 100000)}});
  EXPECT_LT(html.size(), 100000u);
  EXPECT_EQ(count(html, "line raw"), 1u);
  EXPECT_NE(html.find("Pale: lowest and highest"), std::string::npos);
}

TEST(HtmlReport, IsOnePageWithoutOutsideResources) {
  HtmlReport report("Run <1>");
  report.add_heading("Loss & co");
  report.add_paragraph("</main><script>alert(1)</script>");
  report.add_table({"name", "value"}, {{"a<b", "1.5"}, {"", "-2e3"}});
  report.add_line_chart({.title = "<loss>",
                         .x_label = "step",
                         .y_label = "\"loss\"",
                         .series = {wave("</script><b>", 100), wave("other", 200)}});
  const std::string png =
      std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x20\0\0\0\x10", 24) + "rest";
  report.add_image(png, "frames \"x\"");
  const std::string html = report.to_html();
  expect_well_formed(html);
  EXPECT_EQ(count(html, "<script"), 2u);
  EXPECT_EQ(count(html, "alert(1)</script>"), 0u);
  EXPECT_EQ(count(html, "<td class=\"n\">1.5</td>"), 1u);
  EXPECT_EQ(count(html, "<td>a&lt;b</td>"), 1u);
  EXPECT_EQ(count(html, "width=\"192\" height=\"96\""), 1u);  // 32 x 16, six times
  for (const char* outside : {"http://", "https://", "url(", "@import", "<link", "src=\"/"}) {
    EXPECT_EQ(count(html, outside), 0u) << outside;
  }
  const TempDir folder;
  report.write(folder / "report.html");
  EXPECT_EQ(read_text_file(folder / "report.html"), html);
}

TEST(HtmlReport, ChecksItsCaller) {
  HtmlReport report("t");
  EXPECT_THROW(report.add_table({"a", "b"}, {{"1"}}), InternalError);
  EXPECT_THROW(report.add_image("GIF89a", "x"), InternalError);
  EXPECT_THROW(report.add_line_chart({.title = "t", .series = {{"s", {1, 2}, {1}}}}),
               InternalError);
}

}  // namespace
}  // namespace wam::train
