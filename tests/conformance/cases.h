// The case tables: what every op is tried on. A case names an op, its attributes, how its inputs
// are made, what the result should be and how far off it may be, for any device and floating type.
// The runners (CPU here, CUDA beside its kernels) choose the type and iterate over all_cases().
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wam/base/attrs.h"
#include "wam/graph/op_def.h"
#include "wam/tensor/host_tensor.h"

namespace wam::conformance {

// Which type an input has once the graph's floating type is chosen.
enum class Role {
  kFloat,  // the graph's type: f32, f64 or bf16
  kStat,   // the statistics type: f64 for f64, else f32
  kF32,    // whatever the graph's type
  kBF16,
  kF16,
  kI32,
  kI16,
  kU8,
};

// How an input's values are made. Draws are Philox, by case and input number.
struct Fill {
  enum class Kind {
    kNormal,    // a + b * standard normal
    kUniform,   // uniform in [a, b)
    kAwayFrom,  // normal, but at least a away from zero: for functions with a kink there
    kBelow,     // integers in [0, a)
    kDistinct,  // different integers in [0, a)
    kRuns,      // integers in [0, a) in ascending runs, as tokens of one frame have
    kValues,    // as listed
    kDerived,   // computed from the inputs before it
  };
  Kind kind = Kind::kNormal;
  double a = 0, b = 1;
  std::vector<double> values = {};
  std::function<HostTensor(std::span<const HostTensor>)> derive = {};
};

struct Input {
  Shape shape;
  Role role = Role::kFloat;
  Fill fill = {};
  bool differentiable = true;  // false: the op gives no gradient for it, or it is an index
};

// Short forms for the tables.
Input x(Shape shape, double stddev = 1);
Input stat(Shape shape, double stddev = 1);
Input uniform(Shape shape, double low, double high, Role role = Role::kFloat);
Input away_from_zero(Shape shape, double distance);
Input below(int64_t count, int64_t bound);
Input distinct(int64_t count, int64_t bound);
Input runs(int64_t count, int64_t bound);
Input values(Shape shape, std::vector<double> list, Role role = Role::kFloat);
Input constant(Input input);  // no gradient asked for
Input derived(Shape shape, Role role,
              std::function<HostTensor(std::span<const HostTensor>)> derive);

// How far a result may be from its reference. With eps of the output's type and eps_acc of the type
// that accumulates (f32 for bf16 and f32, f64 for f64), element by element:
//   exact:       the same number
//   elementwise: n * max(eps, eps_acc) * size
//   reduction:   eps * |ref| + (2 + 4 sqrt(n)) * eps_acc * size   n terms a result
//   matmul:      as reduction
// `size` is the reference's magnitude: the sum of the absolute values of what is added up, |ref|
// where nothing cancels. 4 sqrt(n) is the probabilistic bound of Higham & Mary (2019) with lambda
// = 4.
struct ErrorModel {
  enum class Kind { kExact, kElementwise, kReduction };
  Kind kind = Kind::kExact;
  double n = 0;
};
inline ErrorModel exact() { return {}; }
inline ErrorModel elementwise(double ulps) { return {ErrorModel::Kind::kElementwise, ulps}; }
inline ErrorModel reduction(double terms) { return {ErrorModel::Kind::kReduction, terms}; }
inline ErrorModel matmul(double k) { return reduction(k); }
double bound(const ErrorModel& model, DType output, double reference, double magnitude);

// A tensor in float64, and what its elements were summed from (empty: nothing cancels).
struct Wide {
  Shape shape;
  std::vector<double> data;
  std::vector<double> magnitude = {};
};
struct RefArgs {
  std::span<const Wide> inputs;
  const Attrs& attrs;
  std::span<const TensorType> outputs;
  Wide output(size_t i) const;  // of the right size, zero
};
using Reference = std::function<std::vector<Wide>(const RefArgs&)>;

struct Case {
  const OpDef* op = nullptr;
  std::string label;
  // An attribute "dtype" may be "float" or "stat": the graph's or the statistics type.
  Attrs attrs = {};
  std::vector<Input> inputs = {};
  // For each output; the last one also for those after it.
  std::vector<ErrorModel> errors = {exact()};
  // The result by plain loops in float64. Without one, the float64 CPU kernel is the reference.
  Reference reference = {};
  // Fused ops give the bits of their decomposition, unless said otherwise here.
  bool exact_decomposition = true;
  // Outputs a loss may depend on; empty: all.
  std::vector<size_t> differentiable_outputs = {};
  bool more_inputs_allowed = false;  // concat
  std::string name() const;          // "<op>__<label>"
};

// Types or attributes that an op must refuse with GraphError.
struct BadCase {
  const OpDef* op = nullptr;
  std::string label;
  Attrs attrs = {};
  std::vector<TensorType> inputs = {};
  std::string name() const;
};

struct Tables {
  std::vector<Case> cases;
  std::vector<BadCase> bad;
  void add(Case c) { cases.push_back(std::move(c)); }
  void refuse(BadCase c) { bad.push_back(std::move(c)); }
};

// Made from the files <stem>_cases.cc, each of which defines `void <stem>_cases(Tables&)`.
const Tables& all_cases();

// A case with its floating type chosen. Values are rounded to that type.
struct Instance {
  Attrs attrs;
  std::vector<HostTensor> inputs;
  std::vector<TensorType> types() const;
};
Instance instantiate(const Case& c, DType float_type);
// The same values in f32 (bf16 -> f32) or f64, for the CPU twin.
Instance widened(const Case& c, const Instance& instance, DType float_type);

// What the outputs should be, given exactly the instance's inputs.
std::vector<Wide> expected(const Case& c, const Instance& instance);
Wide to_wide(const HostTensor& tensor);

// One output against what it should be: the element that is worst relative to its bound.
struct Comparison {
  double ratio = 0;  // |difference| / bound; at most 1 is right
  std::string text;  // "element 7: got 1.5, expected 1.25, bound 1e-07, ratio 2.5e+06"
};
// Equal numbers, infinities included, and two NaNs agree. Shapes must be equal.
Comparison compare(const HostTensor& got, const Wide& want, const ErrorModel& model);

}  // namespace wam::conformance
