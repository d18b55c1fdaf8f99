#include "tests/conformance/gradient_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/conformance/evaluate.h"
#include "tests/conformance/run_kernel.h"
#include "wam/autodiff/gradients.h"
#include "wam/base/check.h"
#include "wam/base/philox.h"
#include "wam/graph/builder.h"
#include "wam/graph/verify.h"
#include "wam/ops/add.h"
#include "wam/ops/linear.h"
#include "wam/ops/reshape.h"

namespace wam::conformance {
namespace {

// Elements of an input that are moved: fewer where each try is dear.
constexpr size_t kMostElements = 24, kFewestElements = 4, kWork = 200000;
constexpr double kStep = 1e-3;

struct Loss {
  double value = 0, size = 0;  // size: sum of absolute terms
};

struct Quotient {
  double value, bound;
};

// One case in float64 with the weights that make a loss of its outputs.
class Checker {
 public:
  explicit Checker(const Case& c) : case_(c), instance_(instantiate(c, DType::kF64)) {
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      if (c.inputs[i].differentiable && c.inputs[i].shape.num_elements() > 0) wrt_.push_back(i);
    }
  }

  GradientReport run() {
    GradientReport report;
    if (wrt_.empty()) return report;
    const std::vector<TensorType> types = instance_.types();
    for (const TensorType& type : case_.op->infer({types, instance_.attrs}))
      make_weights(type.shape);
    const std::vector<HostTensor> grads = analytic();
    for (size_t g = 0; g < grads.size(); ++g) {
      for (const size_t element : sample(static_cast<size_t>(grads[g].num_elements()), wrt_[g])) {
        compare(grads[g].as<double>()[element], wrt_[g], element, report);
      }
    }
    report.ok = report.worst_ratio <= 1;
    return report;
  }

 private:
  bool counts(size_t output) const {
    const auto& list = case_.differentiable_outputs;
    return list.empty() || std::ranges::count(list, output) != 0;
  }

  void make_weights(const Shape& shape) {
    HostTensor weights(DType::kF64, shape);
    Random random(7, RandomUse::kTest, 1, weights_.size());
    for (double& w : weights.as<double>()) w = random.normal();
    weights_.push_back(weights);
  }

  Loss loss_of(std::span<const HostTensor> inputs) const {
    const std::vector<HostTensor> outputs = run_cpu(*case_.op, instance_.attrs, inputs);
    Loss loss;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!counts(i)) continue;
      const auto w = weights_[i].as<double>();
      const auto y = outputs[i].as<double>();
      for (size_t k = 0; k < w.size(); ++k) {
        loss.value += w[k] * y[k];
        loss.size += std::fabs(w[k] * y[k]);
      }
    }
    return loss;
  }

  // The loss as a graph; a weighted sum is a linear layer with one output.
  ValueId build_loss(Builder& b, std::span<const ValueId> outputs) const {
    ValueId loss;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int64_t size = b.shape(outputs[i]).num_elements();
      if (!counts(i) || size == 0) continue;
      const Shape row{1, size};
      const ValueId weights = b.graph().add_constant(weights_[i].reshaped(row), "loss_weights");
      const ValueId term = linear(b, reshape(b, outputs[i], row), weights, {});
      loss = loss.valid() ? add(b, loss, term) : term;
    }
    return loss;
  }

  std::vector<HostTensor> analytic() const {
    Graph graph;
    Builder b(graph);
    std::vector<ValueId> ids, wanted;
    Feeds feeds;
    for (const HostTensor& input : instance_.inputs) {
      ids.push_back(graph.add_input("x" + std::to_string(ids.size()), input.type()));
      feeds[ids.back()] = input;
    }
    for (const size_t i : wrt_) wanted.push_back(ids[i]);
    const std::vector<ValueId> outputs = b.emit(*case_.op, ids, instance_.attrs);
    const ValueId loss = build_loss(b, outputs);
    if (!loss.valid()) return {};
    const std::vector<ValueId> grads = gradients(b, loss, wanted);
    verify(graph);
    for (size_t i = 0; i < grads.size(); ++i) {
      WAM_CHECK(grads[i].valid()) << case_.name() << ": no gradient of input " << wrt_[i];
      WAM_CHECK(graph.shape(grads[i]) == graph.shape(wanted[i])) << "of input " << wrt_[i];
    }
    return evaluate(graph, feeds, grads);
  }

  std::vector<size_t> sample(size_t count, size_t input) const {
    size_t work = 1;
    for (const HostTensor& weights : weights_) work += static_cast<size_t>(weights.num_elements());
    const size_t most = std::clamp(kWork / work, kFewestElements, kMostElements);
    std::vector<size_t> all(count);
    std::iota(all.begin(), all.end(), size_t{0});
    Random random(11, RandomUse::kTest, 2, input);
    for (size_t i = count; i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
    all.resize(std::min(count, most));
    return all;
  }

  Quotient central_difference(size_t input, size_t element) const {
    std::vector<HostTensor> inputs = instance_.inputs;
    inputs[input] = instance_.inputs[input].clone();
    double& place = inputs[input].as<double>()[element];
    const double at = place, step = kStep * std::max(1.0, std::fabs(at));
    double size = 0;
    const auto quotient = [&](double h) {
      place = at + h;
      const Loss up = loss_of(inputs);
      place = at - h;
      const Loss down = loss_of(inputs);
      size = std::max(up.size, down.size);
      return (up.value - down.value) / (2 * h);
    };
    const double coarse = quotient(step), fine = quotient(step / 2);
    // Extrapolation leaves less than a tenth of its own correction; a result has some 64 roundings.
    const double rounding = 64 * 0x1p-53 * (size + std::fabs(fine)) / step;
    return {fine + (fine - coarse) / 3, 0.1 * std::fabs(fine - coarse) + rounding};
  }

  void compare(double gradient, size_t input, size_t element, GradientReport& report) const {
    const Quotient numeric = central_difference(input, element);
    const double difference = std::fabs(gradient - numeric.value);
    const double ratio = difference == 0             ? 0
                         : std::isfinite(difference) ? difference / numeric.bound
                                                     : HUGE_VAL;
    ++report.checked;
    if (ratio < report.worst_ratio) return;
    report.worst_ratio = ratio;
    report.worst =
        fmt::format("input {} element {}: gradient {}, difference quotient {}, bound {:.3g}", input,
                    element, gradient, numeric.value, numeric.bound);
  }

  const Case& case_;
  Instance instance_;
  std::vector<size_t> wrt_;
  std::vector<HostTensor> weights_;
};

}  // namespace

GradientReport check_gradient(const Case& c) { return Checker(c).run(); }

}  // namespace wam::conformance
