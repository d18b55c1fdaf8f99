// What a person looks at after an evaluation: action plots and frame strips in one page.
#pragma once

#include <filesystem>

#include "wam/train/evaluation.h"
#include "wam/train/html_report.h"

namespace wam::train {

void add_eval(HtmlReport& page, const EvalResult& result);
void write_eval_page(const EvalResult& result, const std::filesystem::path& path);
// Loss curves, gradient norm, learning rate and speed of a run.
void add_run_curves(HtmlReport& page, const std::filesystem::path& run_dir);

}  // namespace wam::train
