#include "wam/plan/overlap.h"

#include "wam/base/check.h"
#include "wam/ops/op_list.h"

namespace wam {
namespace {

struct Range {
  Location at;
  int64_t bytes;
};

bool overlap(const Range& a, const Range& b) {
  return a.at.space == b.at.space && a.at.region == b.at.region &&
         a.at.offset_bytes < b.at.offset_bytes + b.bytes &&
         b.at.offset_bytes < a.at.offset_bytes + a.bytes;
}

struct Touched {
  std::vector<Range> read, written;
};

Touched touched_by(const Step& step) {
  Touched touched;
  for (const Operand& operand : step.inputs)
    touched.read.push_back({operand.at, operand.type.size_bytes()});
  for (const Operand& operand : step.outputs) {
    touched.written.push_back({operand.at, operand.type.size_bytes()});
  }
  if (step.workspace_bytes > 0) touched.written.push_back({step.workspace, step.workspace_bytes});
  return touched;
}

bool any_overlap(const std::vector<Range>& a, const std::vector<Range>& b) {
  for (const Range& x : a) {
    for (const Range& y : b) {
      if (overlap(x, y)) return true;
    }
  }
  return false;
}

// Two that only read may run at once.
bool conflict(const Touched& a, const Touched& b) {
  return any_overlap(a.written, b.written) || any_overlap(a.written, b.read) ||
         any_overlap(a.read, b.written);
}

bool is_collective(const Step& step) {
  const OpDef* op = find_op(step.op);
  WAM_CHECK(op != nullptr) << step.op;
  return op->has(kCollective);
}

}  // namespace

std::vector<int32_t> awaited_collectives(const Program& program) {
  struct Flying {
    int32_t step;
    Touched touched;
  };
  std::vector<int32_t> awaited(program.steps.size(), -1);
  std::vector<Flying> flying;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Touched touched = touched_by(program.steps[i]);
    if (is_collective(program.steps[i])) {
      flying.push_back({static_cast<int32_t>(i), touched});
      continue;
    }
    // The last in conflict ends after those before it.
    for (size_t f = flying.size(); f-- > 0;) {
      if (!conflict(flying[f].touched, touched)) continue;
      awaited[i] = flying[f].step;
      flying.erase(flying.begin(), flying.begin() + static_cast<int64_t>(f) + 1);
      break;
    }
  }
  return awaited;
}

}  // namespace wam
