// Line charts as SVG, for a page that carries its own style (html_report.cc).
#pragma once

#include <string>
#include <vector>

namespace wam::train {

struct ChartSeries {
  std::string name;
  std::vector<double> xs, ys;  // of equal length; NaN and infinite values make gaps
};

struct LineChart {
  std::string title, x_label, y_label;
  bool log_y = false;
  std::vector<ChartSeries> series;
};

// Positions of at most about `max_points` points that keep the look of the curve: of each of equal
// runs of points the first, lowest, highest and last. In ascending order.
std::vector<size_t> decimate(const std::vector<double>& ys, size_t max_points);

// A <figure> with title, legend, SVG, a note on values that have no place in it, and the drawn
// values as JSON for the page's pointer read-out. 1 to 20 series are told apart by colour and
// dashes; one of very many points is drawn as a pale band with the means of neighbours in full
// colour.
std::string render_line_chart(const LineChart& chart);

}  // namespace wam::train
