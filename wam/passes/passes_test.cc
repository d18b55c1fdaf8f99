// Passes on graphs in text form: what must change does, what must not does not.
#include <gtest/gtest.h>

#include "wam/base/error.h"
#include "wam/graph/op_def.h"
#include "wam/graph/text.h"
#include "wam/graph/verify.h"
#include "wam/ops/op_list.h"
#include "wam/passes/common_subexpressions.h"
#include "wam/passes/dead_code.h"
#include "wam/passes/decompose_fused.h"
#include "wam/passes/fuse_accumulation.h"
#include "wam/passes/fuse_bias_gradients.h"
#include "wam/passes/fuse_linear_gelu.h"
#include "wam/passes/fuse_padded_sums.h"
#include "wam/passes/fuse_residual_norm.h"
#include "wam/passes/pass.h"
#include "wam/passes/recompute.h"

namespace wam {
namespace {

Graph parse(const std::string& body) { return parse_graph("graph test {\n" + body + "}\n", find_op); }

int count(const Graph& graph, std::string_view op) {
  int found = 0;
  for (const NodeId id : graph.order()) found += graph.node(id).op->name == op ? 1 : 0;
  return found;
}

const std::string kFeedForward = R"(
  %0 = input "x" : f32[4,8]
  %1 = state "w" weights 0 weights : f32[16,8]
  %2 = state "b" weights 512 weights : f32[16]
  %3 = linear{kn=false}(%0, %1, %2) : f32[4,16]
  %4 = gelu_tanh(%3) : f32[4,16]
  output "y" %4
)";

TEST(DeadCode, RemovesWhatNoOutputNeeds) {
  Graph graph = parse(kFeedForward + "  %5 = scale{factor=2.0, offset=0.0}(%4) : f32[4,16]\n");
  EXPECT_TRUE(remove_dead_code(graph));
  EXPECT_EQ(count(graph, "scale"), 0);
  EXPECT_FALSE(remove_dead_code(graph));
}

TEST(CommonSubexpressions, MergesTwinsAndLeavesOthers) {
  Graph graph = parse(R"(
  %0 = input "x" : f32[4]
  %1 = scale{factor=2.0, offset=0.0}(%0) : f32[4]
  %2 = scale{factor=2.0, offset=0.0}(%0) : f32[4]
  %3 = scale{factor=3.0, offset=0.0}(%0) : f32[4]
  %4 = add(%1, %2) : f32[4]
  %5 = add(%4, %3) : f32[4]
  output "y" %5
)");
  EXPECT_TRUE(merge_common_subexpressions(graph));
  verify(graph);
  EXPECT_EQ(count(graph, "scale"), 2);
}

TEST(CommonSubexpressions, KeepsRecomputedClones) {
  Graph graph = parse(R"(
  %0 = input "x" : f32[4]
  %1 = scale{factor=2.0, offset=0.0}(%0) : f32[4]
  %2 = scale{factor=2.0, offset=0.0}(%0) : f32[4] // backward -1 again clone
  %3 = add(%1, %2) : f32[4]
  output "y" %3
)");
  EXPECT_FALSE(merge_common_subexpressions(graph));
}

TEST(FuseLinearGelu, FusesASingleReader) {
  Graph graph = parse(kFeedForward);
  EXPECT_TRUE(fuse_linear_gelu(graph));
  remove_dead_code(graph);
  verify(graph);
  EXPECT_EQ(count(graph, "linear_gelu"), 1);
  EXPECT_EQ(count(graph, "linear"), 0);
}

TEST(FuseLinearGelu, LeavesAProductThatOthersRead) {
  Graph graph = parse(kFeedForward + "  output \"pre\" %3\n");
  EXPECT_FALSE(fuse_linear_gelu(graph));
}

const std::string kSeam = R"(
  %0 = input "x" : f32[2,3,8]
  %1 = input "o" : f32[2,3,8]
  %2 = input "gate" : f32[2,1,8]
  %3 = input "scale" : f32[2,1,8]
  %4 = input "shift" : f32[2,1,8]
  %5 = constant "index" [0,0,0] : i32[3]
  %6 = gate(%1, %2, %5) : f32[2,3,8]
  %7 = add(%0, %6) : f32[2,3,8]
  %8, %9 = layer_norm{affine=false, eps=1e-06}(%7) : f32[2,3,8], f32[6,2]
  %10 = modulate(%8, %3, %4, %5) : f32[2,3,8]
  %11 = add(%7, %10) : f32[2,3,8]
  output "y" %11
)";

TEST(FuseResidualNorm, TakesGateSumNormAndModulation) {
  Graph graph = parse(kSeam);
  EXPECT_TRUE(fuse_residual_norm(graph));
  remove_dead_code(graph);
  verify(graph);
  EXPECT_EQ(count(graph, "residual_norm"), 1);
  EXPECT_EQ(count(graph, "layer_norm") + count(graph, "modulate") + count(graph, "gate"), 0);
  EXPECT_EQ(count(graph, "add"), 1);
}

TEST(FuseResidualNorm, LeavesStatisticsThatOthersRead) {
  Graph graph = parse(kSeam + "  output \"stats\" %9\n");
  fuse_residual_norm(graph);
  EXPECT_EQ(count(graph, "layer_norm"), 1);
}

TEST(FuseResidualNorm, IsUndoneByDecomposition) {
  Graph graph = parse(kSeam);
  fuse_residual_norm(graph);
  EXPECT_TRUE(decompose_fused(graph));
  remove_dead_code(graph);
  verify(graph);
  EXPECT_EQ(count(graph, "residual_norm"), 0);
  EXPECT_EQ(count(graph, "layer_norm"), 1);
  EXPECT_EQ(count(graph, "modulate"), 1);
}

const std::string kAccumulation = R"(
  %0 = input "dy" : f32[4,6]
  %1 = input "x" : f32[4,8]
  %2 = state "gw" grads 0 gradients : f32[6,8]
  %3 = state "gb" grads 256 gradients : f32[6]
  %4, %5 = linear_wgrad{bias=true, dtype="f32", kn=false}(%0, %1) : f32[6,8], f32[6]
  %6 = add(%2, %4) : f32[6,8]
  %7 = add(%3, %5) : f32[6]
  update %2 <- %6
  update %3 <- %7
)";

TEST(FuseAccumulation, AddsInPlace) {
  Graph graph = parse(kAccumulation);
  EXPECT_TRUE(fuse_accumulation(graph));
  verify(graph);
  EXPECT_EQ(count(graph, "add"), 0);
  EXPECT_EQ(count(graph, "linear_wgrad"), 1);
}

TEST(FuseAccumulation, LeavesAGradientThatIsReadElsewhere) {
  Graph graph = parse(kAccumulation + "  output \"dw\" %4\n");
  EXPECT_FALSE(fuse_accumulation(graph));
}

const std::string kSlices = R"(
  %0 = input "a" : f32[1,4]
  %1 = input "b" : f32[2,4]
  %2 = input "c" : f32[1,4]
  %3 = pad_zeros{after=2, before=1, dim=0}(%0) : f32[4,4]
  %4 = pad_zeros{after=0, before=2, dim=0}(%1) : f32[4,4]
  %5 = pad_zeros{after=3, before=0, dim=0}(%2) : f32[4,4]
  %6 = add(%3, %4) : f32[4,4]
)";

TEST(FusePaddedSums, PutsPartsSideBySide) {
  Graph graph = parse(kSlices + "  %7 = add(%6, %5) : f32[4,4]\n  output \"y\" %7\n");
  EXPECT_TRUE(fuse_padded_sums(graph));
  remove_dead_code(graph);
  verify(graph);
  EXPECT_EQ(count(graph, "add") + count(graph, "pad_zeros"), 0);
  ASSERT_EQ(count(graph, "concat"), 1);
  const Node& concat = graph.node(graph.order().back());
  EXPECT_EQ(graph.shape(concat.inputs[0]), (Shape{1, 4}));
  EXPECT_EQ(graph.shape(concat.inputs[2]), (Shape{2, 4}));
}

TEST(FusePaddedSums, LeavesGapsOverlapsAndSumsThatOthersRead) {
  Graph gap = parse(kSlices + "  output \"y\" %6\n");
  EXPECT_FALSE(fuse_padded_sums(gap));
  Graph overlap = parse(kSlices + "  %7 = add(%6, %4) : f32[4,4]\n  output \"y\" %7\n");
  EXPECT_FALSE(fuse_padded_sums(overlap));
  Graph shared = parse(kSlices + "  %7 = add(%6, %5) : f32[4,4]\n  %8 = add(%7, %6) : f32[4,4]\n"
                                 "  output \"y\" %8\n");
  EXPECT_FALSE(fuse_padded_sums(shared));
}

const std::string kQueryGradients = R"(
  %0 = input "one" : f32[2,3,8]
  %1 = input "two" : f32[2,3,8]
  %2 = input "q" : f32[2,3,8]
  %3 = state "w" weights 0 weights : f32[8]
  %4 = add(%0, %1) : f32[2,3,8]
  %5, %6 = qk_norm_rope_grad{eps=1e-06, heads=1, normed=1, parts=1, rope=false}(%4, %2, %3) : f32[2,3,8], f32[8]
  %7, %8 = linear_wgrad{bias=true, dtype="f32", kn=false}(%5, %2) : f32[8,8], f32[8]
  output "dw" %6
  output "dm" %7
  output "db" %8
)";

TEST(FuseBiasGradients, LeavesTheSumToTheNorm) {
  Graph graph = parse(kQueryGradients);
  EXPECT_TRUE(fuse_bias_gradients(graph));
  verify(graph);
  EXPECT_FALSE(graph.node(graph.order().back()).attrs.flag("bias"));
  EXPECT_FALSE(fuse_bias_gradients(graph));
}

TEST(FuseBiasGradients, LeavesABiasOfAnInput) {
  Graph graph = parse(kAccumulation);
  EXPECT_FALSE(fuse_bias_gradients(graph));
}

TEST(FuseGradientSums, LeavesTheSumToTheNorm) {
  Graph graph = parse(kQueryGradients);
  EXPECT_TRUE(fuse_gradient_sums(graph));
  remove_dead_code(graph);
  verify(graph);
  EXPECT_EQ(count(graph, "add"), 0);
}

TEST(FuseGradientSums, LeavesASumThatOthersRead) {
  Graph graph = parse(kQueryGradients + "  output \"sum\" %4\n");
  EXPECT_FALSE(fuse_gradient_sums(graph));
}

const std::string kTwoHalves = R"(
  %0 = input "x" : f32[4,8]
  %1 = state "w" weights 0 weights : f32[8,8]
  %2 = linear{kn=false}(%0, %1) : f32[4,8] // forward 0 blocks.0.ffn
  %3 = gelu_tanh(%2) : f32[4,8] // forward 0 blocks.0.ffn
  %4 = linear{kn=false}(%3, %1) : f32[4,8] // forward 1 blocks.1.ffn
  %5 = gelu_tanh_grad(%4, %2) : f32[4,8] // backward 0 blocks.0.ffn
  %6 = mul(%5, %3) : f32[4,8] // backward 0 blocks.0.ffn
  output "y" %6
)";

TEST(Recompute, NoneChangesNothing) {
  Graph graph = parse(kTwoHalves);
  const std::string before = print(graph);
  const RecomputeReport report = recompute(graph, {});
  EXPECT_EQ(print(graph), before);
  EXPECT_EQ(report.kept_bytes_after, report.kept_bytes_before);
}

TEST(Recompute, FullKeepsWhatCrossesBlocks) {
  Graph graph = parse(kTwoHalves);
  const RecomputeReport report = recompute(graph, {.policy = RecomputePolicy::kFull});
  verify(graph);
  // %2 and %4 are computed again; %3 crosses from block 0 into block 1 and is kept.
  EXPECT_EQ(count(graph, "linear"), 4);
  EXPECT_EQ(count(graph, "gelu_tanh"), 1);
  EXPECT_EQ(report.kept_bytes_after, 4 * 8 * 4);
}

TEST(Recompute, BudgetThatCannotBeMetIsAnError) {
  Graph graph = parse(kTwoHalves + "  output \"held to the end\" %3\n");
  EXPECT_THROW(recompute(graph, {.policy = RecomputePolicy::kBudget, .budget_bytes = 1}), PlanError);
}

TEST(Recompute, UnknownNameIsAnErrorWithTheNearest) {
  Graph graph = parse(kTwoHalves);
  try {
    recompute(graph, {.policy = RecomputePolicy::kList, .drop = {"ffn/linaer:0"}});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("ffn/linear:0"), std::string::npos);
  }
}

TEST(Pipeline, LeavesDisabledPassesOut) {
  Graph graph = parse(kFeedForward);
  const Pass passes[] = {{"fuse_linear_gelu", PassTier::kExact, fuse_linear_gelu}};
  EXPECT_TRUE(run_passes(graph, passes, {.disable = {"fuse_linear_gelu"}}).empty());
  EXPECT_EQ(count(graph, "linear"), 1);
  const std::vector<std::string> known = {"fuse_linear_gelu"};
  const std::vector<std::string> wrong = {"fuse_linear_gleu"};
  EXPECT_THROW(check_disabled(wrong, known), ConfigError);
}

}  // namespace
}  // namespace wam
