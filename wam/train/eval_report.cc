#include "wam/train/eval_report.h"

#include <fmt/format.h>

#include "wam/data/image_codec.h"
#include "wam/train/metrics_sink.h"

namespace wam::train {
namespace {

constexpr size_t kPlottedRows = 96;

std::string png_of(const HostTensor& picture) {
  const std::vector<std::byte> bytes =
      data::encode_png(picture.as<uint8_t>(), picture.shape()[0], picture.shape()[1]);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ChartSeries column(const std::string& name, const std::vector<std::vector<double>>& rows, size_t dim) {
  ChartSeries series{.name = name};
  for (size_t i = 0; i < std::min(rows.size(), kPlottedRows); ++i) {
    series.xs.push_back(static_cast<double>(i));
    series.ys.push_back(rows[i][dim]);
  }
  return series;
}

void add_curve_chart(HtmlReport& page, const std::filesystem::path& run_dir, const std::string& key,
                     const std::string& title, bool log_y) {
  LineChart chart{.title = title, .x_label = "step", .log_y = log_y};
  for (const std::string kind : {"train", "validation"}) {
    Curve curve = read_curve(run_dir, kind, key);
    if (curve.steps.empty()) continue;
    chart.series.push_back(
        {.name = kind == "train" ? "training" : "held out", .xs = curve.steps, .ys = curve.values});
  }
  if (!chart.series.empty()) page.add_line_chart(chart);
}

}  // namespace

void add_run_curves(HtmlReport& page, const std::filesystem::path& run_dir) {
  add_curve_chart(page, run_dir, "loss", "loss", true);
  add_curve_chart(page, run_dir, "dynamics_loss", "video loss", true);
  add_curve_chart(page, run_dir, "action_loss", "action loss", true);
  add_curve_chart(page, run_dir, "grad_norm", "gradient norm", true);
  add_curve_chart(page, run_dir, "lr", "learning rate", false);
  add_curve_chart(page, run_dir, "samples_per_second", "samples per second", false);
}

void add_eval(HtmlReport& page, const EvalResult& r) {
  std::vector<std::vector<std::string>> rows;
  for (size_t d = 0; d < r.dims.size(); ++d) {
    rows.push_back({r.dims[d], fmt::format("{:.5f}", r.error[d]), fmt::format("{:.5f}", r.mean_error[d]),
                    fmt::format("{:.3f}", r.error[d] / std::max(r.mean_error[d], 1e-12))});
  }
  page.add_table({"action", "mean absolute error", "of predicting the mean", "ratio"}, rows);
  for (size_t d = 0; d < r.dims.size(); ++d) {
    page.add_line_chart({.title = r.dims[d],
                         .x_label = "action of the held-out windows, one after another",
                         .series = {column("true", r.truth, d), column("predicted", r.predicted, d)}});
  }
  for (size_t i = 0; i < r.strips.size(); ++i) {
    page.add_image(png_of(r.strips[i]),
                   fmt::format("Held-out window {}: true frames above, predicted below (first column "
                               "observed), seen through a linear read-out of the latents",
                               i + 1));
  }
}

void write_eval_page(const EvalResult& result, const std::filesystem::path& path) {
  HtmlReport page("Open-loop evaluation");
  page.add_heading("Actions and frames");
  add_eval(page, result);
  page.write(path);
}

}  // namespace wam::train
