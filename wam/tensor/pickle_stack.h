// The stack that a pickle's opcodes work on, and the errors that name an opcode's place.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "wam/tensor/pickle.h"

namespace wam {

// Every operation checks that the values it needs are there, above the innermost mark.
class PickleStack {
 public:
  static constexpr size_t kMaxDepth = 4'000'000;

  // `where` names the pickle in messages.
  explicit PickleStack(std::string where) : where_(std::move(where)) {}

  // The byte that errors name from now on.
  void set_opcode_position(size_t position) { opcode_position_ = position; }
  [[noreturn]] void fail(const std::string& what, const std::string& got = "",
                         const std::string& expected = "") const;
  // For an object of a kind that is not read.
  [[noreturn]] void refuse(const std::string& object) const;

  void push(PickleValue value);
  void push(PickleKind kind, int64_t bits = 0) { push(PickleValue{kind, bits}); }
  void push_mark();
  PickleValue top() const;
  PickleValue pop();
  std::vector<PickleValue> pop_values(size_t count);
  // The values above the innermost mark, which goes too.
  std::vector<PickleValue> pop_to_mark();
  // The one value that must be left at the end.
  PickleValue pop_last();

 private:
  size_t num_above_mark() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  void need(size_t count) const;

  std::string where_;
  size_t opcode_position_ = 0;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;
};

}  // namespace wam
