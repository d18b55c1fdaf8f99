// The conformance tests' own tools notice what they are there to notice: kernels that do wrong are
// caught, right ones pass.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/conformance/cases.h"
#include "tests/conformance/run_kernel.h"
#include "wam/base/error.h"
#include "wam/kernels/cpu/support.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {
namespace {

constexpr int64_t kCount = 5;

// y = 2x over 5 floats, then something more.
using Fault = void (*)(const KernelIo&);
template <Fault kFault>
std::unique_ptr<Kernel> doubling(const KernelSignature&) {
  return cpu::make_kernel([](const KernelIo& io) {
    for (int64_t i = 0; i < kCount; ++i) io.out<float>(0)[i] = 2 * io.in<float>(0)[i];
    kFault(io);
  });
}

int64_t four_bytes(const KernelSignature&) { return 4; }

std::vector<HostTensor> run_with(std::unique_ptr<Kernel> (*create)(const KernelSignature&),
                                 const RunOptions& options = {}) {
  HostTensor x(DType::kF32, Shape{kCount});
  for (size_t i = 0; i < kCount; ++i) x.as<float>()[i] = static_cast<float>(i);
  const KernelDef kernel{.op = "copy", .create = create, .workspace_bytes = four_bytes};
  return run_kernel(copy_op, kernel, {}, std::span(&x, 1), options);
}

void no_fault(const KernelIo&) {}
void write_after(const KernelIo& io) { io.out<float>(0)[kCount] = 1; }
void write_before(const KernelIo& io) { io.out<float>(0)[-1] = 1; }
void write_input(const KernelIo& io) { const_cast<float*>(io.in<float>(0))[2] = 7; }
void write_after_workspace(const KernelIo& io) { static_cast<float*>(io.workspace)[1] = 0; }
void use_workspace(const KernelIo& io) {
  io.out<float>(0)[0] = static_cast<float*>(io.workspace)[0];
}

TEST(Harness, RightKernelPasses) {
  const std::vector<HostTensor> out = run_with(doubling<no_fault>);
  EXPECT_EQ(out[0].as<float>()[4], 8);
  EXPECT_TRUE(same_bits(out[0], run_with(doubling<no_fault>, {.poison = 0x42})[0]));
  EXPECT_TRUE(same_bits(out[0], run_with(doubling<no_fault>, {.in_place = {{0, 0}}})[0]));
}

TEST(Harness, WritesOutsideBuffersAreCaught) {
  EXPECT_THROW(run_with(doubling<write_after>), InternalError);
  EXPECT_THROW(run_with(doubling<write_before>), InternalError);
  EXPECT_THROW(run_with(doubling<write_after_workspace>), InternalError);
}

TEST(Harness, WritesToInputsAreCaughtUnlessInPlace) {
  EXPECT_THROW(run_with(doubling<write_input>), InternalError);
  EXPECT_NO_THROW(run_with(doubling<write_input>, {.in_place = {{0, 0}}}));
}

std::unique_ptr<Kernel> forgetful(const KernelSignature&) {
  return cpu::make_kernel([](const KernelIo& io) { io.out<float>(0)[0] = 0; });
}

TEST(Harness, AnotherPoisonShowsWhatIsNotWrittenOrReadTooSoon) {
  EXPECT_FALSE(same_bits(run_with(forgetful)[0], run_with(forgetful, {.poison = 0x42})[0]));
  EXPECT_FALSE(same_bits(run_with(doubling<use_workspace>)[0],
                         run_with(doubling<use_workspace>, {.poison = 0x42})[0]));
}

HostTensor floats(std::vector<float> list) {
  HostTensor tensor(DType::kF32, Shape{static_cast<int64_t>(list.size())});
  std::ranges::copy(list, tensor.as<float>().begin());
  return tensor;
}

TEST(Harness, ComparisonNamesTheWorstElement) {
  const Wide want{Shape{3}, {1, 2, 4}};
  EXPECT_EQ(compare(floats({1, 2, 4}), want, exact()).ratio, 0);
  const float next = std::nextafter(2.0f, 3.0f);
  EXPECT_EQ(compare(floats({1, next, 4}), want, exact()).ratio, HUGE_VAL);
  // One unit in the last place of 2 is twice the rounding error 2^-24 * 2.
  EXPECT_DOUBLE_EQ(compare(floats({1, next, 4}), want, elementwise(1)).ratio, 2);
  EXPECT_LE(compare(floats({1, next, 4}), want, elementwise(2)).ratio, 1);
  EXPECT_TRUE(compare(floats({1, 3, 4.5f}), want, elementwise(2)).text.starts_with("element 1:"));
}

TEST(Harness, NotANumberAgreesOnlyWithItself) {
  const Wide want{Shape{2}, {std::nan(""), HUGE_VAL}};
  const float nan = std::nanf(""), infinity = static_cast<float>(HUGE_VAL);
  EXPECT_EQ(compare(floats({nan, infinity}), want, exact()).ratio, 0);
  EXPECT_EQ(compare(floats({0, infinity}), want, reduction(1e6)).ratio, HUGE_VAL);
  EXPECT_EQ(compare(floats({nan, nan}), want, reduction(1e6)).ratio, HUGE_VAL);
}

TEST(Harness, BoundsFollowTheTypes) {
  // bf16 results of f32 sums: the output's rounding, half a unit in the last of eight places, plus
  // that of the accumulation.
  EXPECT_GT(bound(reduction(100), DType::kBF16, 1, 10), 0x1p-8);
  EXPECT_LT(bound(reduction(100), DType::kBF16, 1, 10), 0x1p-7);
  EXPECT_LT(bound(reduction(100), DType::kF32, 1, 10), 1e-4);
  EXPECT_LT(bound(reduction(100), DType::kF64, 1, 10), 1e-12);
}

TEST(Harness, InstancesAreRoundedAndRepeatable) {
  const Case c{
      .op = &add_op, .label = "probe", .inputs = {x(Shape{7}), stat(Shape{7}), below(4, 3)}};
  const Instance narrow = instantiate(c, DType::kBF16), again = instantiate(c, DType::kBF16);
  EXPECT_EQ(narrow.inputs[0].dtype(), DType::kBF16);
  EXPECT_EQ(narrow.inputs[1].dtype(), DType::kF32);
  EXPECT_EQ(narrow.inputs[2].dtype(), DType::kI32);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(narrow.inputs[i], again.inputs[i]));
  const Instance wide = widened(c, narrow, DType::kF32);
  EXPECT_EQ(wide.inputs[0].dtype(), DType::kF32);
  EXPECT_TRUE(same_bits(wide.inputs[0].to(DType::kBF16), narrow.inputs[0]));
}

}  // namespace
}  // namespace wam::conformance
