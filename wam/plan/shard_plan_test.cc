// The shard pass on graphs in text form, and where the planner puts the pieces of a pack.
#include "wam/passes/shard.h"

#include <gtest/gtest.h>

#include "wam/graph/builder.h"
#include "wam/graph/text.h"
#include "wam/graph/verify.h"
#include "wam/ops/add.h"
#include "wam/ops/all_reduce.h"
#include "wam/ops/mul.h"
#include "wam/ops/op_list.h"
#include "wam/ops/pack.h"
#include "wam/ops/scale.h"
#include "wam/plan/lower.h"
#include "wam/plan/overlap.h"
#include "wam/plan/storage.h"

namespace wam {
namespace {

constexpr int64_t kElements = 192;  // of a buffer: two tensors of 64, one of 60

Placement weight(int block, int64_t offset) {
  return {"w." + std::to_string(block), offset * 4, StateRole::kWeight};
}

// A chain x -> x * a0 * b0 -> ... over `blocks` blocks and back: gradients are stored for a and b.
Graph make_chain(int blocks) {
  Graph graph("chain");
  Builder b(graph);
  const TensorType type{DType::kF32, Shape{60}};
  ValueId x = graph.add_input("x", type);
  std::vector<ValueId> states;
  for (int i = 0; i < blocks; ++i) {
    const ScopeGuard scope(b, {.label = "blocks." + std::to_string(i), .block = i});
    for (const int64_t offset : {0, 64}) {
      const std::string name = "w" + std::to_string(i) + "_" + std::to_string(offset);
      states.push_back(graph.add_state(name, type, weight(i, offset)));
      x = mul(b, x, states.back());
    }
  }
  graph.add_output("y", x);
  for (int i = blocks - 1; i >= 0; --i) {
    const ScopeGuard scope(
        b, {.label = "blocks." + std::to_string(i), .block = i, .phase = Phase::kBackward});
    for (const int64_t offset : {64, 0}) {
      const ValueId w = states[static_cast<size_t>(2 * i + (offset != 0))];
      const ValueId grad = mul(b, x, w);
      x = scale(b, x, 0.5);
      const ValueId state =
          graph.add_state("grad/" + graph.value(w).name, type,
                          {"g." + std::to_string(i), offset * 4, StateRole::kGradient});
      graph.add_update(state, grad);
    }
  }
  return graph;
}

ShardOptions options_of(int blocks) {
  ShardOptions options{.group = {"shard", 2}, .weights = true, .gradients = true};
  for (int i = 0; i < blocks; ++i) {
    options.buffers.push_back({"w." + std::to_string(i), "g." + std::to_string(i), kElements, i});
  }
  return options;
}

std::vector<std::string> labelled(const Graph& graph, std::string_view op) {
  std::vector<std::string> labels;
  for (const NodeId id : graph.order()) {
    if (graph.node(id).op->name == op) labels.push_back(graph.node(id).label);
  }
  return labels;
}

// Places of the gathers and of the first reader of each block in the forward half.
std::string outline(const Graph& graph) {
  std::string text;
  int last = -1;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op->name == "all_gather") text += "g" + std::to_string(node.block) + " ";
    if (node.op->name == "reduce_scatter") text += "r" + std::to_string(node.block) + " ";
    if (node.op->name == "mul" && node.block != last) {
      text += std::to_string(node.block) + " ";
      last = node.block;
    }
  }
  return text;
}

TEST(Shard, GathersRunAheadAndReductionsTrail) {
  Graph graph = make_chain(3);
  ShardOptions options = options_of(3);
  options.prefetch = 0;
  ASSERT_TRUE(shard(graph, options));
  verify(graph);
  EXPECT_EQ(outline(graph), "g0 0 g1 1 g2 2 g2 r2 g1 1 r1 g0 0 r0 ");
  graph = make_chain(3);
  options.prefetch = 1;
  shard(graph, options);
  EXPECT_EQ(outline(graph), "g0 g1 0 g2 1 g2 2 g1 r2 g0 1 r1 0 r0 ");
  graph = make_chain(3);
  options.reshard_after_forward = false;
  shard(graph, options);
  EXPECT_EQ(labelled(graph, "all_gather").size(), 3u);
}

TEST(Shard, StatesArePartsAfterwards) {
  Graph graph = make_chain(2);
  ASSERT_TRUE(shard(graph, options_of(2)));
  EXPECT_FALSE(graph.find_named("w0_0").valid());
  EXPECT_FALSE(graph.find_named("grad/w0_0").valid());
  const ValueId part = graph.find_named("shard/w.1");
  ASSERT_TRUE(part.valid());
  EXPECT_EQ(graph.shape(part), Shape{128});  // 192 over 2 ranks, whole tensors' alignment
  EXPECT_EQ(graph.updates().size(), 2u);
  EXPECT_EQ(graph.type(graph.updates()[0].state), graph.type(part));
}

TEST(Shard, ABufferOutsideBlocksIsGatheredOnce) {
  Graph graph = make_chain(1);
  ShardOptions options = options_of(1);
  options.buffers[0].block = -1;
  shard(graph, options);
  EXPECT_EQ(labelled(graph, "all_gather").size(), 1u);
}

TEST(Shard, AccumulationAddsToTheParts) {
  Graph graph = make_chain(1);
  ShardOptions options = options_of(1);
  options.accumulate = true;
  shard(graph, options);
  EXPECT_EQ(labelled(graph, "add").size(), 1u);
  EXPECT_EQ(graph.node(graph.value(graph.updates()[0].value).producer).op->name, "add");
}

TEST(Shard, LeavesOtherGraphsAlone) {
  Graph graph = make_chain(2);
  const std::string before = print(graph);
  ShardOptions options = options_of(2);
  options.weights = options.gradients = false;
  EXPECT_FALSE(shard(graph, options));
  options = options_of(0);
  EXPECT_FALSE(shard(graph, options));
  EXPECT_EQ(print(graph), before);
}

TEST(Shard, PartsAreEquallyLongAndAligned) {
  EXPECT_EQ(shard_elements(192, 1), 192);
  EXPECT_EQ(shard_elements(192, 2), 128);
  EXPECT_EQ(shard_elements(192, 3), 64);
  EXPECT_EQ(shard_elements(64, 8), 64);
}

TEST(Pack, PiecesAreWrittenInTheirPlaces) {
  Graph graph = make_chain(1);
  ShardOptions options = options_of(1);
  options.weights = false;
  shard(graph, options);
  const StorageMap map = assign_storage(graph);
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op->name != "pack") continue;
    const auto at = [](ValueId v) { return static_cast<size_t>(v.index); };
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      EXPECT_EQ(map.storage_of[at(node.inputs[i])], map.storage_of[at(node.outputs[0])]);
      EXPECT_EQ(map.offset_of[at(node.inputs[i])], 4 * node.attrs.integers("offsets")[i]);
    }
  }
}

TEST(Pack, APieceThatUpdatesAStateStaysThere) {
  Graph graph("g");
  Builder b(graph);
  const TensorType type{DType::kF32, Shape{64}};
  const ValueId w = graph.add_state("w", type, {"w", 0});
  const ValueId next = scale(b, w, 2);
  graph.add_update(w, next);
  const std::vector<ValueId> pieces = {next};
  const ValueId whole =
      b.emit(pack_op, pieces, {{"offsets", std::vector<int64_t>{0}}, {"size", int64_t{64}}})
          .front();
  graph.add_output("whole", whole);
  const StorageMap map = assign_storage(graph);
  EXPECT_NE(map.storage_of[static_cast<size_t>(next.index)],
            map.storage_of[static_cast<size_t>(whole.index)]);
}

// Whatever touches what a collective reads or writes comes before it, or waits for it.
// Two old gradients g0, g1 are added to and the sums go into one buffer, which is summed over ranks
// into the state that covers both. `late`: somebody reads g0 after it was added to.
Graph make_summed(bool late) {
  Graph graph("summed");
  Builder b(graph);
  const TensorType type{DType::kF32, Shape{64}};
  const ValueId x = graph.add_input("x", type);
  std::vector<ValueId> old, sums;
  for (const int64_t offset : {0, 64}) {
    old.push_back(graph.add_state("g" + std::to_string(offset), type, {"g", offset * 4, StateRole::kGradient}));
    sums.push_back(add(b, old.back(), scale(b, x, 2.0)));
  }
  if (late) graph.add_output("late", scale(b, old[0], 3.0));
  const std::vector<int64_t> offsets = {0, 64};
  const ValueId whole = all_reduce(b, pack(b, sums, offsets, 128), {"world", 2});
  const ValueId state = graph.add_state("flat", {DType::kF32, Shape{128}}, {"g", 0, StateRole::kGradient});
  graph.add_update(state, whole);
  return graph;
}

TEST(Pack, WhatBecomesAStateIsWrittenThereUnlessTheOldValueIsStillRead) {
  for (const bool late : {false, true}) {
    Graph graph = make_summed(late);
    const StorageMap map = assign_storage(graph);
    for (const NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (node.op->name != "pack") continue;
      for (const ValueId value : {node.outputs[0], node.inputs[0], node.inputs[1]}) {
        const auto at = static_cast<size_t>(map.storage_of[static_cast<size_t>(value.index)]);
        EXPECT_EQ(map.storages[at].fixed.valid(), !late) << value.index;
      }
      EXPECT_EQ(map.offset_of[static_cast<size_t>(node.inputs[1].index)], 64 * 4);
    }
  }
}

TEST(Overlap, NothingTouchesTheMemoryOfACollectiveUnderWay) {
  Target target{"test", [](std::string_view) { return true; },
                [](const Step&) { return int64_t{0}; }};
  for (const bool keeps : {false, true}) {
    target.collectives_overlap = keeps;
    Graph graph = make_chain(4);
    shard(graph, options_of(4));
    const Program program = lower(graph, target);
    const std::vector<int32_t> awaited = awaited_collectives(program);
    int32_t ended = -1, overlapped = 0;
    for (size_t i = 0; i < program.steps.size(); ++i) {
      ended = std::max(ended, awaited[i]);
      if (find_op(program.steps[i].op)->has(kCollective)) continue;
      for (size_t j = 0; j < i; ++j) {
        if (!find_op(program.steps[j].op)->has(kCollective) || static_cast<int32_t>(j) <= ended)
          continue;
        ++overlapped;
        for (const Operand& a : program.steps[j].outputs) {
          for (const auto* list : {&program.steps[i].inputs, &program.steps[i].outputs}) {
            for (const Operand& b : *list) {
              const bool apart = a.at.space != b.at.space || a.at.region != b.at.region ||
                                 a.at.offset_bytes + a.type.size_bytes() <= b.at.offset_bytes ||
                                 b.at.offset_bytes + b.type.size_bytes() <= a.at.offset_bytes;
              EXPECT_TRUE(apart) << program.steps[i].label << " and " << program.steps[j].label;
            }
          }
        }
      }
    }
    EXPECT_GT(overlapped, 0);
  }
}

}  // namespace
}  // namespace wam
