// A two-layer network end to end: build, differentiate, lower, run; gradients against central
// differences; the arena against its lower bound.
#include <gtest/gtest.h>

#include "wam/autodiff/gradients.h"
#include "wam/base/random_stream.h"
#include "wam/exec/cuda_trace.h"
#include "wam/exec/executor.h"
#include "wam/graph/text.h"
#include "wam/graph/verify.h"
#include "wam/ops/linear.h"
#include "wam/ops/mul.h"
#include "wam/ops/op_list.h"
#include "wam/ops/scale.h"
#include "wam/ops/sum_rows.h"
#include "wam/tensor/split_float.h"

namespace wam {
namespace {

HostTensor random_tensor(const Shape& shape, uint64_t index) {
  Random random(7, RandomUse::kTest, 0, index);
  HostTensor tensor(DType::kF64, shape);
  for (double& x : tensor.as<double>()) x = random.normal();
  return tensor;
}

// loss = sum((x W1^T) W2^T)^2 with W2 stored [K, N].
Graph make_network() {
  Graph graph("network");
  Builder b(graph);
  const ValueId x = graph.add_input("x", {DType::kF64, Shape{5, 3}});
  const ValueId w1 = graph.add_state("w1", {DType::kF64, Shape{4, 3}}, {"weights", 0});
  const ValueId bias = graph.add_state("bias", {DType::kF64, Shape{4}}, {"weights", 256});
  const ValueId w2 = graph.add_state("w2", {DType::kF64, Shape{4, 2}}, {"weights", 512});
  const ValueId y = linear(b, linear(b, x, w1, bias), w2, {}, true);
  const ValueId loss = sum_rows(b, mul(b, y, y), Shape{});
  const ValueId wrt[] = {w1, bias, w2};
  const std::vector<ValueId> grads = gradients(b, loss, wrt);
  graph.add_output("loss", loss);
  graph.add_output("d_w1", grads[0]);
  graph.add_output("d_bias", grads[1]);
  graph.add_output("d_w2", grads[2]);
  verify(graph);
  return graph;
}

struct Fixture {
  std::unique_ptr<Device> device = make_cpu_device();
  Program program = lower(make_network(), device->target());
  std::shared_ptr<Memory> memory;
  std::unique_ptr<Executor> executor;
  Fixture() {
    const Program* programs[] = {&program};
    memory = device->allocate(combine(programs));
    executor = device->load(program, memory, {.poison = true});
    executor->write("x", random_tensor(Shape{5, 3}, 0));
    executor->write("w1", random_tensor(Shape{4, 3}, 1));
    executor->write("bias", random_tensor(Shape{4}, 2));
    executor->write("w2", random_tensor(Shape{4, 2}, 3));
  }
  double loss() {
    executor->run();
    return executor->read("loss").as<double>()[0];
  }
};

TEST(Exec, GradientsMatchCentralDifferences) {
  Fixture f;
  for (const std::string name : {"w1", "bias", "w2"}) {
    f.loss();
    const HostTensor grad = f.executor->read("d_" + name);
    HostTensor value = f.executor->read(name);
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      const double h = 1e-5, saved = value.as<double>()[i];
      value.as<double>()[i] = saved + h;
      f.executor->write(name, value);
      const double up = f.loss();
      value.as<double>()[i] = saved - h;
      f.executor->write(name, value);
      const double down = f.loss();
      value.as<double>()[i] = saved;
      f.executor->write(name, value);
      // The loss is quadratic in each weight: central differences are exact up to rounding.
      EXPECT_NEAR(grad.as<double>()[i], (up - down) / (2 * h), 1e-7 * std::abs(up)) << name << i;
    }
  }
}

TEST(Exec, ArenaIsNotBelowItsLowerBound) {
  const Program program = lower(make_network(), cpu_target());
  EXPECT_GE(program.arena.peak, program.arena.lower_bound);
  EXPECT_GT(program.cost.flops, 0);
}

TEST(Exec, TextFormRoundTrips) {
  // Parsing numbers values in the order of the lines: after one round the text is stable.
  const std::string text = print(parse_graph(print(make_network()), find_op));
  EXPECT_EQ(print(parse_graph(text, find_op)), text);
}

TEST(Exec, StateUpdatesAreDoneInPlaceOrByACopy) {
  Graph graph("update");
  Builder b(graph);
  const ValueId w = graph.add_state("w", {DType::kF32, Shape{4}}, {"weights", 0});
  const ValueId doubled = scale(b, w, 2);
  graph.add_update(w, doubled);
  EXPECT_EQ(lower(graph, cpu_target()).steps.size(), 1u);
  // A reader after the producer forces a copy at the end.
  graph.add_output("old_plus_one", scale(b, w, 1, 1));
  const Program program = lower(graph, cpu_target());
  EXPECT_EQ(program.steps.size(), 3u);
  EXPECT_EQ(program.steps.back().op, "copy");
}

// Values of the stream as a Random gives them one by one.
std::vector<float> drawn_one_by_one(size_t count, double low, double high) {
  Random random(9, RandomUse::kWeightInit, 0, 77);
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(low + (high - low) * random.uniform()));
  }
  return values;
}

TEST(Memory, DrawsTheStreamOfARandom) {
  constexpr int64_t kCount = 1001;  // odd: the last block is half used
  const RandomStream stream(9, RandomUse::kWeightInit, 0, 77);
  MemoryPlan plan;
  plan.regions = {{"w", 4 * kCount + 64}, {"low", 2 * kCount + 64}};
  const std::shared_ptr<Memory> memory = make_cpu_device()->allocate(plan);
  const std::vector<float> want = drawn_one_by_one(kCount, -0.25, 0.25);
  std::vector<float> got(kCount);
  memory->draw_uniform({.region = "w", .offset = 8}, kCount, stream, -0.25, 0.25);
  memory->read_region("w", 32, got.data(), 4 * kCount);
  EXPECT_EQ(got, want);
  std::vector<uint16_t> high(kCount);
  std::vector<int16_t> low(kCount);
  memory->draw_uniform({.region = "w", .offset = 8, .dtype = DType::kBF16}, kCount, stream, -0.25, 0.25);
  memory->read_region("w", 16, high.data(), 2 * kCount);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(high[i], float_to_bf16(want[i])) << i;
  memory->draw_uniform({.region = "w", .offset = 8, .dtype = DType::kBF16, .low_region = "low"}, kCount, stream,
                       -0.25, 0.25);
  memory->read_region("w", 16, high.data(), 2 * kCount);
  memory->read_region("low", 16, low.data(), 2 * kCount);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(join_float(high[i], low[i]), want[i]) << i;
}

TEST(DeviceTrace, BusyIsTheUnionOfWhatRan) {
  EXPECT_EQ(busy_seconds({}), 0);
  EXPECT_DOUBLE_EQ(busy_seconds({{"a", 0, 1}, {"b", 3, 4}}), 2);
  // Overlapping, one inside another, and out of order.
  EXPECT_DOUBLE_EQ(busy_seconds({{"c", 2, 5}, {"a", 0, 3}, {"b", 1, 2}, {"d", 7, 8}}), 6);
}

}  // namespace
}  // namespace wam
