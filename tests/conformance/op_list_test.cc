// The op list is sorted, its names are those of the definitions and kernels, and every op has
// cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "tests/conformance/cases.h"
#include "tests/conformance/evaluate.h"
#include "wam/kernels/kernel.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {
namespace {

struct Listed {
  std::string_view name;
  bool cpu;
};
constexpr Listed kListed[] = {
#define WAM_OP(name, stem, cpu, cuda) {#name, cpu != 0},
#include "wam/ops/op_list.inc"
#undef WAM_OP
};

TEST(OpList, IsSortedWithoutRepeats) {
  for (size_t i = 1; i < std::size(kListed); ++i) {
    EXPECT_LT(kListed[i - 1].name, kListed[i].name) << "ops/op_list.inc is sorted by name";
  }
}

TEST(OpList, NamesAreThoseOfTheDefinitions) {
  const std::vector<const OpDef*> ops = all_ops();
  ASSERT_EQ(ops.size(), std::size(kListed));
  for (size_t i = 0; i < ops.size(); ++i) EXPECT_EQ(ops[i]->name, kListed[i].name);
}

TEST(OpList, KernelsHaveTheirOpsNames) {
  for (const Listed& op : kListed) {
    const KernelDef* kernel = find_cpu_kernel(op.name);
    EXPECT_EQ(kernel != nullptr, op.cpu) << op.name;
    if (kernel == nullptr) continue;
    EXPECT_EQ(kernel->op, op.name);
  }
}

TEST(OpList, EveryOpCanRunOnCpu) {
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(op->has(kView) || find_cpu_kernel(op->name) != nullptr || op->decompose != nullptr)
        << op->name << " is not a view and has neither a CPU kernel nor a decomposition";
    EXPECT_EQ(op->has(kView), op->view_offset != nullptr) << op->name;
  }
}

TEST(OpList, EveryOpHasCases) {
  std::set<std::string_view> covered;
  for (const Case& c : all_cases().cases) covered.insert(c.op->name);
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(covered.contains(op->name))
        << op->name << " has no case in tests/conformance/<stem>_cases.cc";
  }
}

// A case serves as a check of gradients if some input is differentiable and it is not empty.
bool checks_gradient(const Case& c) {
  return std::ranges::any_of(c.inputs, [](const Input& input) {
    return input.differentiable && input.shape.num_elements() > 0;
  });
}

TEST(OpList, EveryDifferentiableOpHasAGradientCheck) {
  std::set<std::string_view> differentiable, checked;
  for (const Case& c : all_cases().cases) {
    const Instance in = instantiate(c, DType::kF64);
    if (!is_differentiable(*c.op, in.attrs, in.types())) continue;
    differentiable.insert(c.op->name);
    if (checks_gradient(c)) checked.insert(c.op->name);
  }
  for (const OpDef* op : all_ops()) {
    if (op->backward != nullptr && !op->has(kNotDifferentiable)) differentiable.insert(op->name);
  }
  for (const std::string_view name : differentiable) {
    EXPECT_TRUE(checked.contains(name)) << name << " has a gradient that no case checks";
  }
}

TEST(OpList, CaseNamesAreUnique) {
  std::set<std::string> names;
  for (const Case& c : all_cases().cases) EXPECT_TRUE(names.insert(c.name()).second) << c.name();
  names.clear();
  for (const BadCase& c : all_cases().bad) EXPECT_TRUE(names.insert(c.name()).second) << c.name();
}

}  // namespace
}  // namespace wam::conformance
