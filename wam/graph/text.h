// Text form of a graph, for dumps, tests of passes and messages. One node a line:
//   %5, %6 = layer_norm{eps=1e-06}(%4) : f32[2,3], f32[2,2]  // blocks.0.self_attn forward
// parse() reads what print() writes (labels and phases included); constants of up to 64 elements
// carry their values, larger ones only their hash and cannot be parsed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "wam/graph/graph.h"

namespace wam {

std::string print(const Graph& graph);

// Finds an op by name, or null; ops/op_list.h has the one for all ops.
using OpLookup = std::function<const OpDef*(std::string_view)>;
// Throws GraphError with the line.
Graph parse_graph(std::string_view text, const OpLookup& find_op);

}  // namespace wam
