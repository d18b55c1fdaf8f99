// Helpers for the shape rules of ops. Each throws GraphError with the types it saw.
#pragma once

#include <string>
#include <string_view>

#include "wam/graph/op_def.h"

namespace wam::rules {

[[noreturn]] void fail(const OpArgs& args, std::string_view expected);
// Number of inputs in [low, high].
void count(const OpArgs& args, size_t low, size_t high);
// Input i has the same dtype as input 0.
void same_dtype(const OpArgs& args, size_t i);
// Input i is floating point.
void floating(const OpArgs& args, size_t i);
void dtype(const OpArgs& args, size_t i, DType dtype);
void shape(const OpArgs& args, size_t i, const Shape& shape);
void ndim(const OpArgs& args, size_t i, int ndim);
// Anything else an op demands of its inputs.
inline void demand(bool condition, const OpArgs& args, std::string_view expected) {
  if (!condition) fail(args, expected);
}
// True if `suffix` equals the last dims of `shape` (a scalar is a suffix of every shape).
bool is_suffix(const Shape& suffix, const Shape& shape);
// `shape` with the last dim replaced.
Shape with_last(const Shape& shape, int64_t last);
// Type in which gradients of weights are accumulated: f64 for f64, f32 otherwise.
DType grad_dtype(DType dtype);

}  // namespace wam::rules
