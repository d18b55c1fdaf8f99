// Shared by the CPU kernels of collectives.
#pragma once

#include <cstring>

#include "wam/dist/groups.h"
#include "wam/kernels/cpu/support.h"

namespace wam::cpu {

// The communicator of an op's attributes. Checked when a kernel runs, since it is prepared without.
class GroupOf {
 public:
  explicit GroupOf(const KernelSignature& s)
      : axis_(dist::parse_axis(s.attrs.text("axis"))), ranks_(s.attrs.integer("ranks")) {}
  bool is_single() const { return ranks_ == 1; }
  dist::Communicator& operator()(const KernelIo& io) const {
    WAM_CHECK(io.groups != nullptr)
        << "a collective of " << ranks_ << " ranks without a communicator";
    dist::Communicator& group = io.groups->on(axis_);
    WAM_CHECK(group.size() == ranks_) << group.size() << " ranks, the program has " << ranks_;
    return group;
  }

 private:
  dist::Axis axis_;
  int64_t ranks_;
};

inline dist::Reduction reduction_of(const KernelSignature& s) {
  return {s.inputs[0].dtype, parse_dtype(s.attrs.text("wire"))};
}

inline void copy_bytes(const KernelIo& io, int64_t bytes) {
  if (io.inputs[0] != io.outputs[0])
    std::memcpy(io.outputs[0], io.inputs[0], static_cast<size_t>(bytes));
}

}  // namespace wam::cpu
