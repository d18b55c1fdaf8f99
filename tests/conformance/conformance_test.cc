// Every case on the CPU kernels: against its reference, its decomposition, central differences,
// itself (other poison, other thread counts, in place).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "tests/conformance/cases.h"
#include "tests/conformance/evaluate.h"
#include "tests/conformance/gradient_check.h"
#include "tests/conformance/run_kernel.h"
#include "wam/base/error.h"

namespace wam::conformance {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF64};

// Sets the number of OpenMP threads for a block.
class Threads {
 public:
  explicit Threads(int count) : saved_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(saved_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int saved_;
};

class Conformance : public testing::TestWithParam<const Case*> {
 protected:
  const Case& c() const { return *GetParam(); }
  const OpDef& op() const { return *c().op; }
  std::vector<HostTensor> run(const Instance& in, const RunOptions& options = {}) const {
    return run_cpu(op(), in.attrs, in.inputs, options);
  }
};

class FusedOp : public Conformance {};
class InPlaceOp : public Conformance {};
class DifferentiableOp : public Conformance {};

void expect_same(std::span<const HostTensor> a, std::span<const HostTensor> b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(same_bits(a[i], b[i])) << "output " << i << " differs: " << what;
  }
}

void expect_close(const HostTensor& output, const Wide& want, const ErrorModel& model) {
  const Comparison worst = compare(output, want, model);
  EXPECT_LE(worst.ratio, 1) << output.type().to_string() << " " << worst.text;
}

TEST_P(Conformance, AgreesWithReference) {
  for (const DType dtype : kTypes) {
    const Instance in = instantiate(c(), dtype);
    const std::vector<HostTensor> got = run(in);
    const std::vector<Wide> want = expected(c(), in);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(fmt::format("{} output {}", name(dtype), i));
      expect_close(got[i], want[i], c().errors[std::min(i, c().errors.size() - 1)]);
    }
  }
}

TEST_P(FusedOp, AgreesWithDecomposition) {
  for (const DType dtype : kTypes) {
    const Instance in = instantiate(c(), dtype);
    const std::vector<HostTensor> got = run(in);
    const std::vector<HostTensor> plain = decomposed(op(), in.attrs, in.inputs);
    ASSERT_EQ(got.size(), plain.size());
    if (c().exact_decomposition) {
      expect_same(got, plain, "fused and plain");
      continue;
    }
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(fmt::format("{} output {}", name(dtype), i));
      expect_close(got[i], to_wide(plain[i]), c().errors[std::min(i, c().errors.size() - 1)]);
    }
  }
}

// Another poison: what is not written, or read before it is written, shows.
TEST_P(Conformance, RepeatsBitwise) {
  for (const DType dtype : kTypes) {
    const Instance in = instantiate(c(), dtype);
    expect_same(run(in), run(in, {.poison = 0x42}), "run again");
  }
}

TEST_P(Conformance, SameBitsForAnyThreadCount) {
  for (const DType dtype : kTypes) {
    const Instance in = instantiate(c(), dtype);
    const auto with = [&](int count) {
      const Threads threads(count);
      return run(in);
    };
    const std::vector<HostTensor> one = with(1);
    expect_same(one, with(2), "two threads");
    expect_same(one, with(3), "three threads");
  }
}

std::vector<InPlace> applicable_pairs(const OpDef& op, const Instance& in) {
  const std::vector<TensorType> types = in.types();
  const std::vector<TensorType> outputs = op.infer({types, in.attrs});
  std::vector<InPlace> pairs;
  for (const InPlace& pair : op.in_place) {
    const auto input = static_cast<size_t>(pair.input), output = static_cast<size_t>(pair.output);
    if (input >= types.size() || output >= outputs.size()) continue;
    if (types[input].size_bytes() == outputs[output].size_bytes()) pairs.push_back(pair);
  }
  return pairs;
}

// As many outputs as possible at once, each input given to one.
std::vector<InPlace> together(const std::vector<InPlace>& pairs) {
  std::vector<InPlace> chosen;
  for (const InPlace& pair : pairs) {
    const bool taken = std::ranges::any_of(chosen, [&](const InPlace& other) {
      return other.output == pair.output || other.input == pair.input;
    });
    if (!taken) chosen.push_back(pair);
  }
  return chosen;
}

TEST_P(InPlaceOp, GivesTheSameBits) {
  for (const DType dtype : kTypes) {
    const Instance in = instantiate(c(), dtype);
    const std::vector<HostTensor> apart = run(in);
    const std::vector<InPlace> pairs = applicable_pairs(op(), in);
    for (const InPlace& pair : pairs) {
      SCOPED_TRACE(fmt::format("output {} in place of input {}", pair.output, pair.input));
      expect_same(apart, run(in, {.in_place = {pair}}), "in place");
    }
    expect_same(apart, run(in, {.in_place = together(pairs)}), "all in place");
  }
}

TEST_P(DifferentiableOp, AgreesWithCentralDifferences) {
  const GradientReport report = check_gradient(c());
  EXPECT_TRUE(report.ok) << report.worst << ", ratio " << report.worst_ratio;
}

TEST_P(Conformance, RefusesWrongInputs) {
  const Instance in = instantiate(c(), DType::kF32);
  const std::vector<TensorType> types = in.types();
  EXPECT_NO_THROW(op().infer({types, in.attrs}));
  EXPECT_THROW(op().infer({{}, in.attrs}), GraphError);
  if (!c().more_inputs_allowed) {
    std::vector<TensorType> more = types;
    more.insert(more.end(), 3, types.back());
    EXPECT_THROW(op().infer({more, in.attrs}), GraphError);
  }
}

// A bound that lets a thousandth of the largest result pass tests nothing.
TEST_P(Conformance, BoundsAreTight) {
  const Instance in = instantiate(c(), DType::kF32);
  const std::vector<TensorType> types = in.types();
  const std::vector<TensorType> outputs = op().infer({types, in.attrs});
  const std::vector<Wide> want = expected(c(), in);
  for (size_t i = 0; i < want.size(); ++i) {
    const ErrorModel& model = c().errors[std::min(i, c().errors.size() - 1)];
    double largest = 0;
    std::vector<double> limits;
    for (size_t k = 0; k < want[i].data.size(); ++k) {
      const double size = want[i].magnitude.empty() ? 0 : want[i].magnitude[k];
      if (!std::isfinite(want[i].data[k]) || !std::isfinite(size)) continue;
      largest = std::max({largest, std::fabs(want[i].data[k]), size});
      limits.push_back(bound(model, outputs[i].dtype, want[i].data[k], size));
    }
    if (limits.empty() || largest == 0) continue;
    std::ranges::nth_element(limits, limits.begin() + static_cast<int64_t>(limits.size() / 2));
    EXPECT_LE(limits[limits.size() / 2], 1e-3 * largest) << "output " << i;
  }
}

// No CPU kernel computes in bf16, but the rules must take it and references must exist: that is
// what the CUDA kernels are held against.
TEST_P(Conformance, IsReadyForBf16) {
  const Instance in = instantiate(c(), DType::kBF16);
  const std::vector<TensorType> types = in.types();
  const std::vector<TensorType> outputs = op().infer({types, in.attrs});
  const std::vector<Wide> want = expected(c(), in);
  ASSERT_EQ(outputs.size(), want.size());
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(outputs[i].shape, want[i].shape);
}

TEST_P(Conformance, CostIsFinite) {
  const std::vector<TensorType> types = instantiate(c(), DType::kF32).types();
  const Attrs attrs = instantiate(c(), DType::kF32).attrs;
  const OpCost cost = cost_of(op(), {types, attrs}, op().infer({types, attrs}));
  EXPECT_TRUE(std::isfinite(cost.flops) && std::isfinite(cost.bytes) && cost.flops >= 0 &&
              cost.bytes >= 0);
}

template <typename Predicate>
std::vector<const Case*> cases_where(const Predicate& predicate) {
  std::vector<const Case*> list;
  for (const Case& c : all_cases().cases) {
    if (predicate(c)) list.push_back(&c);
  }
  return list;
}
std::vector<const Case*> fused_cases() {
  return cases_where([](const Case& c) { return c.op->decompose != nullptr; });
}
std::vector<const Case*> in_place_cases() {
  return cases_where([](const Case& c) {
    return !c.op->in_place.empty() && !applicable_pairs(*c.op, instantiate(c, DType::kF32)).empty();
  });
}
std::vector<const Case*> differentiable_cases() {
  return cases_where([](const Case& c) {
    const Instance in = instantiate(c, DType::kF64);
    return is_differentiable(*c.op, in.attrs, in.types());
  });
}
std::string name_of(const testing::TestParamInfo<const Case*>& info) { return info.param->name(); }

INSTANTIATE_TEST_SUITE_P(Ops, Conformance,
                         testing::ValuesIn(cases_where([](const Case&) { return true; })), name_of);
INSTANTIATE_TEST_SUITE_P(Ops, FusedOp, testing::ValuesIn(fused_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Ops, InPlaceOp, testing::ValuesIn(in_place_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Ops, DifferentiableOp, testing::ValuesIn(differentiable_cases()), name_of);

class Refusal : public testing::TestWithParam<const BadCase*> {};

TEST_P(Refusal, ThrowsGraphError) {
  const BadCase& bad = *GetParam();
  EXPECT_THROW(bad.op->infer({bad.inputs, bad.attrs}), GraphError);
}

std::vector<const BadCase*> bad_pointers() {
  std::vector<const BadCase*> list;
  for (const BadCase& c : all_cases().bad) list.push_back(&c);
  return list;
}
INSTANTIATE_TEST_SUITE_P(Ops, Refusal, testing::ValuesIn(bad_pointers()),
                         [](const auto& info) { return info.param->name(); });

}  // namespace
}  // namespace wam::conformance
