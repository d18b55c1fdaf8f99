#include "wam/tensor/pickle_stack.h"

#include "wam/base/error.h"

namespace wam {

void PickleStack::fail(const std::string& what, const std::string& got,
                       const std::string& expected) const {
  throw DataError({.where = where_ + ": byte " + std::to_string(opcode_position_),
                   .what = what,
                   .got = got,
                   .expected = expected,
                   .remedy = "The file is damaged or no checkpoint of tensors."});
}

void PickleStack::refuse(const std::string& object) const {
  throw DataError(
      {.where = where_ + ": byte " + std::to_string(opcode_position_),
       .what = "object not allowed in a checkpoint",
       .got = object,
       .expected = "only tensors, dicts, lists, tuples, text, numbers, booleans and None",
       .remedy = "It may run code when loaded. If you trust the file, load it in PyTorch and "
                 "save its tensors alone."});
}

void PickleStack::push(PickleValue value) {
  if (stack_.size() == kMaxDepth) fail("pickle stack too deep");
  stack_.push_back(value);
}

void PickleStack::push_mark() {
  if (marks_.size() == kMaxDepth) fail("pickle stack too deep");
  marks_.push_back(stack_.size());
}

void PickleStack::need(size_t count) const {
  if (num_above_mark() < count) fail("pickle stack underflow");
}

PickleValue PickleStack::top() const {
  need(1);
  return stack_.back();
}

PickleValue PickleStack::pop() {
  const PickleValue value = top();
  stack_.pop_back();
  return value;
}

std::vector<PickleValue> PickleStack::pop_values(size_t count) {
  need(count);
  const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<PickleValue> values(first, stack_.end());
  stack_.erase(first, stack_.end());
  return values;
}

std::vector<PickleValue> PickleStack::pop_to_mark() {
  if (marks_.empty()) fail("no mark on the pickle stack");
  std::vector<PickleValue> values = pop_values(num_above_mark());
  marks_.pop_back();
  return values;
}

PickleValue PickleStack::pop_last() {
  if (stack_.size() != 1 || !marks_.empty()) fail("values left over at the end of the pickle");
  return pop();
}

}  // namespace wam
