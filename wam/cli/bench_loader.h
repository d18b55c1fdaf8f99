// wam bench loader.
#pragma once

#include <CLI/CLI.hpp>

namespace wam::cli {

void add_bench_loader(CLI::App& bench);

}  // namespace wam::cli
