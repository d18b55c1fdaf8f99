#include "wam/train/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "wam/base/check.h"
#include "wam/train/chart_axis.h"
#include "wam/train/html_text.h"

namespace wam::train {
namespace {

// User units of the SVG; the page scales it to the width there is.
constexpr double kWidth = 760, kHeight = 320;
constexpr double kLeft = 66, kRight = 14, kTop = 12, kBottom = 46;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr size_t kMaxPoints = 1600;  // about two a unit of width
constexpr size_t kMaxMarkedPoints = 30;
constexpr size_t kMeanRuns = 200;
constexpr int kNumColors = 10;

// The part of a series that is drawn.
struct Curve {
  std::string name;
  std::vector<double> xs, ys;
  // Means of runs of points; empty for series short enough to be drawn whole.
  std::vector<double> mean_xs, mean_ys;
  int64_t num_not_finite = 0, num_not_positive = 0;
};

struct Plot {
  ChartAxis x, y;
  double at_x(double value) const { return kLeft + kPlotWidth * x.place(value); }
  double at_y(double value) const { return kTop + kPlotHeight * (1 - y.place(value)); }
  bool has_place(double vx, double vy) const { return x.has_place(vx) && y.has_place(vy); }
};

// Means of the finite points of kMeanRuns runs. Of many points the lowest and highest alone make a
// band that hides where most of them lie.
void add_means(const ChartSeries& series, Curve& curve) {
  const size_t size = series.ys.size();
  for (size_t run = 0; run < kMeanRuns; ++run) {
    double sum_x = 0, sum_y = 0, count = 0;
    for (size_t i = size * run / kMeanRuns; i < size * (run + 1) / kMeanRuns; ++i) {
      if (!std::isfinite(series.xs[i]) || !std::isfinite(series.ys[i])) continue;
      sum_x += series.xs[i];
      sum_y += series.ys[i];
      ++count;
    }
    curve.mean_xs.push_back(sum_x / count);  // NaN, a gap, if there is none
    curve.mean_ys.push_back(sum_y / count);
  }
}

Curve to_curve(const ChartSeries& series, bool log_y) {
  WAM_CHECK(series.xs.size() == series.ys.size()) << "series " << series.name;
  Curve curve{.name = series.name};
  for (size_t i = 0; i < series.ys.size(); ++i) {
    const bool is_finite = std::isfinite(series.xs[i]) && std::isfinite(series.ys[i]);
    curve.num_not_finite += !is_finite;
    curve.num_not_positive += is_finite && log_y && series.ys[i] <= 0;
  }
  for (size_t i : decimate(series.ys, kMaxPoints)) {
    curve.xs.push_back(series.xs[i]);
    curve.ys.push_back(series.ys[i]);
  }
  if (series.ys.size() > kMaxPoints) add_means(series, curve);
  return curve;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Nothing if no value has a place.
std::optional<Plot> make_plot(const std::vector<Curve>& curves, bool log_y) {
  Range x, y;
  for (const Curve& curve : curves) {
    for (size_t i = 0; i < curve.xs.size(); ++i) {
      if (!std::isfinite(curve.xs[i]) || !std::isfinite(curve.ys[i]) || (log_y && curve.ys[i] <= 0))
        continue;
      x.include(curve.xs[i]);
      y.include(curve.ys[i]);
    }
  }
  if (x.low > x.high) return std::nullopt;
  return Plot{ChartAxis(x.low, x.high, false, 0.0), ChartAxis(y.low, y.high, log_y, 0.05)};
}

std::string style_class(size_t series) {
  return fmt::format("s{}{}", series % kNumColors, series / kNumColors % 2 == 1 ? " dash" : "");
}

std::string path_data(const std::vector<double>& xs, const std::vector<double>& ys,
                      const Plot& plot) {
  std::string data;
  bool is_pen_down = false;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (!plot.has_place(xs[i], ys[i])) {
      is_pen_down = false;
      continue;
    }
    data +=
        fmt::format("{}{:.1f} {:.1f}", is_pen_down ? 'L' : 'M', plot.at_x(xs[i]), plot.at_y(ys[i]));
    // With round caps a line of no length shows a point that stands alone.
    if (!is_pen_down) data += "h0";
    is_pen_down = true;
  }
  return data;
}

std::string summary(const Curve& curve) {
  Range range;
  double last = std::numeric_limits<double>::quiet_NaN();
  for (double y : curve.ys) {
    if (!std::isfinite(y)) continue;
    range.include(y);
    last = y;
  }
  return curve.name + ": last " + format_number(last) + ", lowest " + format_number(range.low) +
         ", highest " + format_number(range.high);
}

std::string draw_curve(const Curve& curve, const Plot& plot, size_t series) {
  std::string svg =
      fmt::format(R"(<g class="{}"><title>{}</title><path class="line{}" d="{}"/>)",
                  style_class(series), escape_html(summary(curve)),
                  curve.mean_xs.empty() ? "" : " raw", path_data(curve.xs, curve.ys, plot));
  if (!curve.mean_xs.empty()) {
    svg += fmt::format(R"(<path class="line" d="{}"/>)",
                       path_data(curve.mean_xs, curve.mean_ys, plot));
  }
  for (size_t i = 0; curve.xs.size() <= kMaxMarkedPoints && i < curve.xs.size(); ++i) {
    if (!plot.has_place(curve.xs[i], curve.ys[i])) continue;
    svg +=
        fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.5"><title>{}: {}, {}</title></circle>)",
                    plot.at_x(curve.xs[i]), plot.at_y(curve.ys[i]), escape_html(curve.name),
                    format_number(curve.xs[i]), format_number(curve.ys[i]));
  }
  return svg + "</g>";
}

std::string draw_axes(const LineChart& chart, const Plot& plot) {
  std::string svg;
  for (const Tick& tick : plot.y.ticks(6)) {
    const double y = plot.at_y(tick.value);
    svg += fmt::format(
        R"(<path class="grid" d="M{} {:.1f}h{}"/><text class="tick end" x="{}" y="{:.1f}">{}</text>)",
        kLeft, y, kPlotWidth, kLeft - 8, y + 4, tick.label);
  }
  for (const Tick& tick : plot.x.ticks(8)) {
    const double x = plot.at_x(tick.value);
    svg += fmt::format(
        R"(<path class="mark" d="M{:.1f} {}v5"/><text class="tick middle" x="{:.1f}" y="{}">{}</text>)",
        x, kTop + kPlotHeight, x, kTop + kPlotHeight + 18, tick.label);
  }
  svg +=
      fmt::format(R"(<path class="axis" d="M{} {}h{}"/>)", kLeft, kTop + kPlotHeight, kPlotWidth);
  svg += fmt::format(R"(<text class="label middle" x="{}" y="{}">{}</text>)",
                     kLeft + kPlotWidth / 2, kHeight - 8, escape_html(chart.x_label));
  const double middle = kTop + kPlotHeight / 2;
  svg += fmt::format(
      R"svg(<text class="label middle" x="14" y="{0}" transform="rotate(-90 14 {0})">{1}</text>)svg",
      middle, escape_html(chart.y_label));
  return svg;
}

std::string legend(const std::vector<Curve>& curves) {
  std::string html = R"(<ul class="legend">)";
  for (size_t i = 0; i < curves.size(); ++i) {
    html += fmt::format(
        R"(<li class="{}"><svg viewBox="0 0 22 8"><path class="line" d="M1 4h20"/></svg>{}</li>)",
        style_class(i), escape_html(curves[i].name));
  }
  return html + "</ul>";
}

// Says what is not in the picture, or not as it is.
std::string note(const std::vector<Curve>& curves) {
  std::string text;
  for (const Curve& curve : curves) {
    if (curve.num_not_finite > 0) {
      text += fmt::format(" {}: {} not finite.", curve.name, curve.num_not_finite);
    }
    if (curve.num_not_positive > 0) {
      text += fmt::format(" {}: {} not positive.", curve.name, curve.num_not_positive);
    }
  }
  if (!text.empty()) text = "Not drawn:" + text;
  const bool has_means = std::any_of(curves.begin(), curves.end(),
                                     [](const Curve& curve) { return !curve.mean_xs.empty(); });
  if (has_means) text = "Pale: lowest and highest values; full: means of neighbours. " + text;
  return text.empty() ? "" : "<p class=\"note\">" + escape_html(text) + "</p>";
}

// The values that have a place, for the pointer's read-out; five digits are finer than a pixel.
nlohmann::json read_out(const Curve& curve, const Plot& plot) {
  nlohmann::json xs = nlohmann::json::array(), ys = nlohmann::json::array();
  for (size_t i = 0; i < curve.xs.size(); ++i) {
    if (!plot.has_place(curve.xs[i], curve.ys[i])) continue;
    xs.push_back(curve.xs[i]);
    ys.push_back(fmt::format("{:.5g}", curve.ys[i]));
  }
  return {{"xs", xs}, {"ys", ys}};
}

std::string chart_data(const std::vector<Curve>& curves, const Plot& plot) {
  nlohmann::json json = {{"x0", plot.x.low()}, {"x1", plot.x.high()},
                         {"left", kLeft},      {"width", kPlotWidth},
                         {"total", kWidth},    {"series", nlohmann::json::array()}};
  for (const Curve& curve : curves) json["series"].push_back(read_out(curve, plot));
  return "<script type=\"application/json\">" + json.dump() + "</script>";
}

std::string figure(const LineChart& chart, const std::string& inner) {
  return "<figure class=\"chart\"><figcaption>" + escape_html(chart.title) + "</figcaption>" +
         inner + "</figure>\n";
}

}  // namespace

std::vector<size_t> decimate(const std::vector<double>& ys, size_t max_points) {
  std::vector<size_t> kept;
  const size_t num_runs = std::max<size_t>(1, max_points / 4);
  if (ys.size() <= max_points) {
    for (size_t i = 0; i < ys.size(); ++i) kept.push_back(i);
    return kept;
  }
  for (size_t run = 0; run < num_runs; ++run) {
    const size_t begin = ys.size() * run / num_runs, end = ys.size() * (run + 1) / num_runs;
    size_t lowest = begin, highest = begin, gap = begin;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(ys[i])) {
        gap = i;
        continue;
      }
      if (!std::isfinite(ys[lowest]) || ys[i] < ys[lowest]) lowest = i;
      if (!std::isfinite(ys[highest]) || ys[i] > ys[highest]) highest = i;
    }
    for (size_t i : std::set<size_t>{begin, lowest, highest, gap, end - 1}) kept.push_back(i);
  }
  return kept;
}

std::string render_line_chart(const LineChart& chart) {
  std::vector<Curve> curves;
  for (const ChartSeries& series : chart.series) curves.push_back(to_curve(series, chart.log_y));
  const std::optional<Plot> plot = make_plot(curves, chart.log_y);
  if (!plot) return figure(chart, "<p class=\"note\">No values to draw.</p>" + note(curves));
  std::string svg =
      fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}" data-x="{}">)", kWidth,
                  kHeight, escape_html(chart.title), escape_html(chart.x_label));
  svg += draw_axes(chart, *plot);
  for (size_t i = 0; i < curves.size(); ++i) svg += draw_curve(curves[i], *plot, i);
  svg += fmt::format(R"(<path class="cursor" d="M0 {}v{}"/></svg>)", kTop, kPlotHeight);
  return figure(chart, legend(curves) + svg + note(curves) + chart_data(curves, *plot));
}

}  // namespace wam::train
