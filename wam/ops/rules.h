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
// Attribute `dim` of the op, checked to be a dim of input 0.
int dim(const OpArgs& args);
// Input i has the statistics type of input 0: f64 for f64, f32 otherwise.
void stat(const OpArgs& args, size_t i);
// Rows chosen by token: x [B, L, D] is input 0, input `table` is st [B, T, D], and input `index` is
// i32 [L] with entries below T.
void token_table(const OpArgs& args, size_t table, size_t index);
// `shape` with one dim replaced.
Shape with_dim(const Shape& shape, int dim, int64_t size);
// A negative dim counts from the end. Throws GraphError if there is no such dim.
int normalized_dim(const Shape& shape, int dim);
// Throws GraphError if `index` is a constant (i32) with an entry outside [0, bound), or, with
// `unique`, one that occurs twice. Other values are checked by the CPU kernels when they run.
void constant_index(const Builder& b, ValueId index, int64_t bound, bool unique,
                    std::string_view op);
// Throws GraphError if a gradient of input i is asked for, which the op does not give.
void no_gradient(const BackwardArgs& args, size_t i, std::string_view op);
// Throws GraphError if a gradient arrives at output i, which carries none.
void no_output_gradient(const BackwardArgs& args, size_t i, std::string_view op);
// Attributes 'axis' and 'ranks' of a collective.
void collective(const OpArgs& args);
// Attribute 'wire' of a reduction: f32 (the terms as they are), or bf16 for f32 and bf16 data.
void wire(const OpArgs& args);
double wire_bytes(const OpArgs& args);  // of one term
// Type in which gradients of weights are accumulated: f64 for f64, f32 otherwise.
DType grad_dtype(DType dtype);

}  // namespace wam::rules
