#include "wam/exec/cuda_pieces.h"

#include "wam/ops/op_list.h"
#include "wam/plan/overlap.h"

namespace wam {

std::vector<Piece> pieces_of(const Program& program, bool cut) {
  const size_t count = program.steps.size();
  if (!cut) return {{0, count}};
  const std::vector<int32_t> awaited = awaited_collectives(program);
  std::vector<Piece> pieces;
  for (size_t i = 0; i < count; ++i) {
    const bool collective = find_op(program.steps[i].op)->has(kCollective);
    if (pieces.empty() || collective || pieces.back().streamed || awaited[i] >= 0) {
      pieces.push_back({i, i, collective});
    }
    pieces.back().end = i + 1;
  }
  return pieces;
}

}  // namespace wam
