// One number of the robot to one of the model and back, by the formulas of the public code, in
// float32 as there:
//   q99       2 (x - q01) / (q99 - q01) - 1, clamped to [-1, 1]; where q01 == q99, x clamped
//   min_max   2 (x - min) / (max - min) - 1, clamped; where min == max, 0
//   mean_std  (x - mean) / std; where std == 0, x
//   binary    1 if x > 0.5, else 0
//   none      x
// Inverses undo the linear part; where the range was empty they give the constant that the data
// had (q01, min, mean), binary thresholds again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "wam/data/embodiment.h"

namespace wam::data {

// Formula and its two numbers: (q01, q99), (min, max) or (mean, std).
struct DimNorm {
  NormMode mode = NormMode::kNone;
  float a = 0, b = 0;
};

float normalize(const DimNorm& norm, float x);
float denormalize(const DimNorm& norm, float x);

// Names of the two statistics a mode needs; empty for those that need none.
std::vector<std::string> needed_statistics(NormMode mode);

}  // namespace wam::data
