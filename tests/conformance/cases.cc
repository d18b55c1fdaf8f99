#include "tests/conformance/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/conformance/run_kernel.h"
#include "wam/base/check.h"
#include "wam/base/philox.h"
#include "wam/ops/rules.h"

namespace wam::conformance {
namespace {

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 0x1p-53;
    case DType::kF32:
      return 0x1p-24;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF16:
      return 0x1p-11;
    default:
      return 0;
  }
}

DType dtype_of(Role role, DType float_type) {
  switch (role) {
    case Role::kFloat:
      return float_type;
    case Role::kStat:
      return rules::grad_dtype(float_type);
    case Role::kF32:
      return DType::kF32;
    case Role::kBF16:
      return DType::kBF16;
    case Role::kF16:
      return DType::kF16;
    case Role::kI32:
      return DType::kI32;
    case Role::kI16:
      return DType::kI16;
    case Role::kU8:
      return DType::kU8;
  }
  return float_type;
}

uint64_t seed_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

std::vector<double> shuffled(int64_t bound, Random& random) {
  std::vector<double> all(static_cast<size_t>(bound));
  std::iota(all.begin(), all.end(), 0.0);
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  return all;
}

double draw(const Fill& fill, int64_t i, int64_t count, Random& random) {
  switch (fill.kind) {
    case Fill::Kind::kNormal:
      return fill.a + fill.b * random.normal();
    case Fill::Kind::kUniform:
      return fill.a + (fill.b - fill.a) * random.uniform();
    case Fill::Kind::kAwayFrom: {
      const double value = random.normal();
      return value + std::copysign(fill.a, value);
    }
    case Fill::Kind::kBelow:
      return static_cast<double>(random.below(static_cast<uint64_t>(fill.a)));
    case Fill::Kind::kRuns:
      return std::floor(static_cast<double>(i) * fill.a / static_cast<double>(count));
    default:
      return 0;
  }
}

HostTensor make_values(const Input& input, DType dtype, Random random) {
  HostTensor wide(DType::kF64, input.shape);
  const auto data = wide.as<double>();
  std::vector<double> list = input.fill.values;
  if (input.fill.kind == Fill::Kind::kDistinct)
    list = shuffled(static_cast<int64_t>(input.fill.a), random);
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = list.empty() ? draw(input.fill, static_cast<int64_t>(i), wide.num_elements(), random)
                           : list.at(i);
  }
  return wide.to(dtype);
}

Attrs resolved(const Attrs& attrs, DType float_type) {
  Attrs result = attrs;
  if (!attrs.has("dtype")) return result;
  const std::string text = attrs.text("dtype");
  if (text == "float") result.set("dtype", std::string(name(float_type)));
  if (text == "stat") result.set("dtype", std::string(name(rules::grad_dtype(float_type))));
  return result;
}

// A shape rule can be broken by names of cases only; keep them fit for test names.
std::string join_name(const OpDef* op, const std::string& label) {
  std::string text = std::string(op->name) + "__" + label;
  for (char& c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return text;
}

}  // namespace

Input x(Shape shape, double stddev) { return {.shape = shape, .fill = {.b = stddev}}; }
Input stat(Shape shape, double stddev) {
  return {.shape = shape, .role = Role::kStat, .fill = {.b = stddev}};
}
Input uniform(Shape shape, double low, double high, Role role) {
  return {
      .shape = shape, .role = role, .fill = {.kind = Fill::Kind::kUniform, .a = low, .b = high}};
}
Input away_from_zero(Shape shape, double distance) {
  return {.shape = shape, .fill = {.kind = Fill::Kind::kAwayFrom, .a = distance}};
}
namespace {
Input integers(int64_t count, int64_t bound, Fill::Kind kind) {
  return {.shape = Shape{count},
          .role = Role::kI32,
          .fill = {.kind = kind, .a = static_cast<double>(bound)},
          .differentiable = false};
}
}  // namespace
Input below(int64_t count, int64_t bound) { return integers(count, bound, Fill::Kind::kBelow); }
Input distinct(int64_t count, int64_t bound) {
  return integers(count, bound, Fill::Kind::kDistinct);
}
Input runs(int64_t count, int64_t bound) { return integers(count, bound, Fill::Kind::kRuns); }
Input values(Shape shape, std::vector<double> list, Role role) {
  return {.shape = shape,
          .role = role,
          .fill = {.kind = Fill::Kind::kValues, .values = std::move(list)},
          .differentiable = role != Role::kI32};
}
Input constant(Input input) {
  input.differentiable = false;
  return input;
}
Input derived(Shape shape, Role role,
              std::function<HostTensor(std::span<const HostTensor>)> derive) {
  return {.shape = shape,
          .role = role,
          .fill = {.kind = Fill::Kind::kDerived, .derive = std::move(derive)},
          .differentiable = false};
}

double bound(const ErrorModel& model, DType output, double reference, double magnitude) {
  const double eps = epsilon(output), acc = epsilon(rules::grad_dtype(output));
  const double size = std::max(std::fabs(reference), magnitude);
  // Results below the smallest normal number may become zero.
  const double tiny = output == DType::kF64 ? 0x1p-1022 : 0x1p-126;
  switch (model.kind) {
    case ErrorModel::Kind::kExact:
      return 0;
    case ErrorModel::Kind::kElementwise:
      return model.n * std::max(eps, acc) * size + tiny;
    case ErrorModel::Kind::kReduction:
      return eps * std::fabs(reference) + (2 + 4 * std::sqrt(model.n)) * acc * size + tiny;
  }
  return 0;
}

Wide RefArgs::output(size_t i) const {
  return {outputs[i].shape,
          std::vector<double>(static_cast<size_t>(outputs[i].shape.num_elements()))};
}

std::string Case::name() const { return join_name(op, label); }
std::string BadCase::name() const { return join_name(op, label); }

std::vector<TensorType> Instance::types() const {
  std::vector<TensorType> result;
  for (const HostTensor& input : inputs) result.push_back(input.type());
  return result;
}

Instance instantiate(const Case& c, DType float_type) {
  Instance instance{resolved(c.attrs, float_type), {}};
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Input& input = c.inputs[i];
    const DType dtype = dtype_of(input.role, float_type);
    if (input.fill.kind == Fill::Kind::kDerived) {
      instance.inputs.push_back(input.fill.derive(instance.inputs).to(dtype));
    } else {
      instance.inputs.push_back(
          make_values(input, dtype, Random(seed_of(c.name()), RandomUse::kTest, 0, i)));
    }
    WAM_CHECK(instance.inputs.back().shape() == input.shape) << c.name() << " input " << i;
  }
  return instance;
}

Instance widened(const Case& c, const Instance& instance, DType float_type) {
  Instance result{resolved(c.attrs, float_type), {}};
  for (size_t i = 0; i < instance.inputs.size(); ++i) {
    result.inputs.push_back(instance.inputs[i].to(dtype_of(c.inputs[i].role, float_type)));
  }
  return result;
}

Wide to_wide(const HostTensor& tensor) {
  const HostTensor wide = tensor.to(DType::kF64);
  const auto data = wide.as<double>();
  return {tensor.shape(), {data.begin(), data.end()}};
}

std::vector<Wide> expected(const Case& c, const Instance& instance) {
  if (!c.reference) {
    const Instance twin = widened(c, instance, DType::kF64);
    std::vector<Wide> outputs;
    for (const HostTensor& output : run_cpu(*c.op, twin.attrs, twin.inputs)) {
      outputs.push_back(to_wide(output));
    }
    return outputs;
  }
  std::vector<Wide> inputs;
  for (const HostTensor& input : instance.inputs) inputs.push_back(to_wide(input));
  const std::vector<TensorType> types = instance.types();
  const std::vector<TensorType> outputs = c.op->infer({types, instance.attrs});
  return c.reference({inputs, instance.attrs, outputs});
}

Comparison compare(const HostTensor& got, const Wide& want, const ErrorModel& model) {
  WAM_CHECK(got.shape() == want.shape) << got.type().to_string() << ", " << want.shape.to_string();
  const Wide result = to_wide(got);
  Comparison worst;
  for (size_t i = 0; i < result.data.size(); ++i) {
    const double a = result.data[i], b = want.data[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double limit =
        bound(model, got.dtype(), b, want.magnitude.empty() ? 0 : want.magnitude[i]);
    const double difference = std::fabs(a - b);
    const double ratio = limit > 0 && std::isfinite(difference) ? difference / limit : HUGE_VAL;
    if (ratio <= worst.ratio) continue;
    worst = {ratio, fmt::format("element {}: got {}, expected {}, bound {:.3g}, ratio {:.3g}", i, a,
                                b, limit, ratio)};
  }
  return worst;
}

}  // namespace wam::conformance
