// A Program: a graph laid out in memory, ready to be replayed. Immutable data with no pointer in it:
// one Program serves any number of executors. Made by lower() (plan/lower.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wam/graph/graph.h"
#include "wam/graph/op_def.h"

namespace wam {

// Where bytes lie. Regions persist between runs and may be shared by programs; the arena is scratch.
struct Location {
  enum class Space : uint8_t { kArena, kRegion, kConstant };
  Space space = Space::kArena;
  int32_t region = -1;  // index into Program::regions (kRegion) or Program::constants (kConstant)
  int64_t offset_bytes = 0;
  bool operator==(const Location&) const = default;
};

struct Operand {
  Location at;
  TensorType type;
};

// True if `piece` begins inside the bytes of `whole`.
bool lies_in(const Operand& piece, const Operand& whole);

// One kernel launch (an op's kernel may launch several).
struct Step {
  std::string op;
  Attrs attrs;
  std::vector<Operand> inputs, outputs;
  Location workspace;
  int64_t workspace_bytes = 0;
  OpCost cost;
  Phase phase = Phase::kForward;
  int block = -1;
  std::string label;
};

struct Region {
  std::string name;
  int64_t bytes = 0;                  // largest extent any state of the program uses
  std::vector<std::pair<StateRole, int64_t>> by_role;
};

struct NamedOperand {
  std::string name;
  Operand operand;
};

// What the planner knows of its own result; all in bytes.
struct ArenaReport {
  int64_t peak = 0;         // size of the arena
  int64_t lower_bound = 0;  // most bytes alive at once; no assignment can need less
  int64_t workspace = 0;    // largest workspace of a step (inside peak)
  int peak_step = 0;        // where the lower bound is reached
  double fragmentation() const {
    return lower_bound == 0 ? 0 : static_cast<double>(peak) / static_cast<double>(lower_bound) - 1;
  }
};

struct Program {
  std::string name;
  std::vector<Step> steps;
  std::vector<Region> regions;          // "inputs" is one of them
  std::vector<HostTensor> constants;    // uploaded once when an executor is made
  std::vector<NamedOperand> inputs;     // in region "inputs"
  std::vector<NamedOperand> states;     // by name, in their regions
  std::vector<NamedOperand> outputs;    // arena or region; valid from a run's end to the next run
  ArenaReport arena;
  OpCost cost;                          // sum over steps
};

}  // namespace wam
