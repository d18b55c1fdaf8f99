// What the builder functions decide before an op is emitted: shortcuts, views, checks of constants,
// and what the rematerialisation and gradient rules refuse. Numbers are tested by
// tests/conformance.
#include <gtest/gtest.h>

#include <cstring>

#include "wam/base/error.h"
#include "wam/graph/builder.h"
#include "wam/graph/verify.h"
#include "wam/ops/cast.h"
#include "wam/ops/concat.h"
#include "wam/ops/gate.h"
#include "wam/ops/layer_norm.h"
#include "wam/ops/linear_gelu.h"
#include "wam/ops/modulate.h"
#include "wam/ops/op_list.h"
#include "wam/ops/pad_zeros.h"
#include "wam/ops/permute.h"
#include "wam/ops/put_rows.h"
#include "wam/ops/residual_norm.h"
#include "wam/ops/slice.h"
#include "wam/ops/sum_dim.h"
#include "wam/ops/take_rows.h"
#include "wam/ops/weighted_mse.h"

namespace wam {
namespace {

class Builders : public testing::Test {
 protected:
  ValueId input(Shape shape, DType dtype = DType::kF32) {
    return graph.add_input("x" + std::to_string(graph.num_values()), {dtype, shape});
  }
  ValueId index(std::vector<int32_t> rows) {
    HostTensor data(DType::kI32, Shape{static_cast<int64_t>(rows.size())});
    std::memcpy(data.data(), rows.data(), rows.size() * sizeof(int32_t));
    return graph.add_constant(data, "index");
  }
  const OpDef* maker(ValueId id) const { return graph.node(graph.value(id).producer).op; }

  Graph graph;
  Builder b{graph};
};

TEST_F(Builders, NothingToDoGivesTheInputItself) {
  const ValueId x = input(Shape{2, 3});
  EXPECT_EQ(slice(b, x, 1, 0, 3), x);
  EXPECT_EQ(pad_zeros(b, x, 0, 0, 0), x);
  EXPECT_EQ(cast(b, x, DType::kF32), x);
  EXPECT_EQ(concat(b, {x}, 0), x);
  EXPECT_EQ(permute(b, x, {0, 1}), x);
  EXPECT_EQ(graph.num_nodes(), 0);
}

TEST_F(Builders, SliceIsAViewWhereElementsLieTogether) {
  EXPECT_EQ(maker(slice(b, input(Shape{4, 3}), 0, 1, 2)), &slice_rows_op);
  EXPECT_EQ(maker(slice(b, input(Shape{1, 1, 9, 2}), 2, 1, 2)), &slice_rows_op);
  EXPECT_EQ(maker(slice(b, input(Shape{2, 9, 2}), 1, 1, 2)), &slice_op);
  EXPECT_EQ(maker(slice(b, input(Shape{2, 9}), -1, 1, 2)), &slice_op);
}

TEST_F(Builders, PermuteIsAReshapeWhereElementsKeepTheirOrder) {
  const ValueId y = permute(b, input(Shape{3, 1, 5}), {1, 0, 2});
  EXPECT_EQ(maker(y), &reshape_op);
  EXPECT_EQ(graph.shape(y), (Shape{1, 3, 5}));
  EXPECT_EQ(maker(permute(b, input(Shape{3, 2, 5}), {1, 0, 2})), &permute_op);
  EXPECT_THROW(permute(b, input(Shape{3, 2}), {0, 0}), GraphError);
}

TEST_F(Builders, DimsOutsideAreRefused) {
  const ValueId x = input(Shape{2, 3});
  EXPECT_THROW(slice(b, x, 2, 0, 1), GraphError);
  EXPECT_THROW(pad_zeros(b, x, -3, 1, 0), GraphError);
  EXPECT_THROW(sum_dim(b, x, 2), GraphError);
  EXPECT_THROW(concat(b, {x, x}, 2), GraphError);
  EXPECT_THROW(concat(b, std::span<const ValueId>(), 0), GraphError);
}

TEST_F(Builders, ConstantRowsMustBeInsideAndDistinct) {
  const ValueId x = input(Shape{2, 3, 4});
  EXPECT_NO_THROW(take_rows(b, x, index({2, 0})));
  EXPECT_THROW(take_rows(b, x, index({3})), GraphError);
  EXPECT_THROW(take_rows(b, x, index({-1})), GraphError);
  EXPECT_THROW(take_rows(b, x, index({1, 1})), GraphError);
  EXPECT_NO_THROW(put_rows(b, x, index({4, 0, 2}), 5));
  EXPECT_THROW(put_rows(b, x, index({4, 0, 5}), 5), GraphError);
  EXPECT_THROW(put_rows(b, x, index({4, 0, 0}), 5), GraphError);
}

TEST_F(Builders, TokensMustPointIntoTheTable) {
  const ValueId x = input(Shape{1, 3, 4}), table = input(Shape{1, 2, 4});
  EXPECT_NO_THROW(modulate(b, x, table, table, index({0, 1, 1})));
  EXPECT_THROW(modulate(b, x, table, table, index({0, 1, 2})), GraphError);
  EXPECT_THROW(gate(b, x, table, index({0, -1, 1})), GraphError);
  const ResidualNormInputs inputs{.x = x, .o = x, .gate = table, .index = index({0, 1, 2})};
  EXPECT_THROW(residual_norm(b, inputs, 1e-6), GraphError);
}

TEST_F(Builders, ErrorsNameTheOpAndTheTypes) {
  try {
    const ValueId x = input(Shape{2, 3}), w = input(Shape{4, 5});
    linear_gelu(b, x, w, {});
    FAIL() << "no error";
  } catch (const GraphError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("linear_gelu"), std::string::npos) << text;
    EXPECT_NE(text.find("f32[2,3], f32[4,5]"), std::string::npos) << text;
  }
}

// Runs a backward rule with the given gradients of outputs.
std::vector<ValueId> differentiate(Builder& b, ValueId output, std::vector<ValueId> output_grads,
                                   const std::vector<bool>& needs) {
  const Node node = b.graph().node(b.graph().value(output).producer);
  const std::unique_ptr<bool[]> flags(new bool[needs.size()]);
  std::copy(needs.begin(), needs.end(), flags.get());
  return node.op->backward({b, node.attrs, node.inputs, node.outputs, output_grads,
                            std::span<const bool>(flags.get(), needs.size())});
}

TEST_F(Builders, GradientsThatDoNotExistAreRefused) {
  const ValueId x = input(Shape{1, 3, 4});
  const LayerNorm norm = layer_norm(b, x, 1e-6);
  EXPECT_THROW(differentiate(b, norm.y, {norm.y, norm.stats}, {true}), GraphError);
  const WeightedMse loss{.pred = x,
                         .target = input(Shape{1, 3, 4}),
                         .row_weight = input(Shape{1, 1}),
                         .index = index({0, 0, 0})};
  const ValueId y = weighted_mse(b, loss, 1);
  EXPECT_NO_THROW(differentiate(b, y, {y}, {true, false, false, false}));
  EXPECT_THROW(differentiate(b, y, {y}, {true, true, false, false}), GraphError);
}

ValueId rematerialised(Builder& b, ValueId output, std::vector<ValueId> kept, int which) {
  const Node node = b.graph().node(b.graph().value(output).producer);
  const std::function<ValueId(ValueId)> fetch = [](ValueId id) { return id; };
  return node.op->rematerialise(b, {node.attrs, node.inputs, kept, which, fetch});
}

TEST_F(Builders, LinearGeluComesBackFromItsPreActivation) {
  const LinearGelu y = linear_gelu(b, input(Shape{2, 3}), input(Shape{5, 3}), {});
  const ValueId h = rematerialised(b, y.h, {{}, y.pre}, 0);
  EXPECT_EQ(maker(h), &gelu_tanh_op);
  EXPECT_FALSE(rematerialised(b, y.h, {y.h, {}}, 1).valid());
  EXPECT_FALSE(rematerialised(b, y.h, {{}, {}}, 0).valid());
}

TEST_F(Builders, NormComesBackFromTheResidualStream) {
  const ValueId x = input(Shape{1, 3, 4}), table = input(Shape{1, 2, 4}), i = index({0, 1, 1});
  const ResidualNorm y = residual_norm(
      b, {.x = x, .o = x, .gate = table, .scale = table, .shift = table, .index = i}, 1e-6);
  for (const int which : {1, 2}) {
    const ValueId again = rematerialised(b, y.x, {y.x, {}, {}}, which);
    ASSERT_TRUE(again.valid());
    EXPECT_EQ(maker(again), &residual_norm_op);
    EXPECT_EQ(graph.type(again), graph.type(which == 1 ? y.h : y.stats));
  }
  EXPECT_FALSE(rematerialised(b, y.x, {{}, y.h, y.stats}, 0).valid());
  EXPECT_FALSE(rematerialised(b, y.x, {{}, {}, {}}, 1).valid());
  verify(graph);
}

}  // namespace
}  // namespace wam
