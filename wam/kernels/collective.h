// Shared by the kernels of collectives on all devices.
#pragma once

#include "wam/base/check.h"
#include "wam/dist/groups.h"
#include "wam/kernels/kernel.h"

namespace wam {

// The communicator of an op's attributes. Looked up when a kernel runs, since it is prepared
// without.
class GroupOf {
 public:
  explicit GroupOf(const KernelSignature& s)
      : axis_(dist::parse_axis(s.attrs.text("axis"))), ranks_(s.attrs.integer("ranks")) {}
  // A world of one may run without a communicator.
  bool is_absent(const KernelIo& io) const {
    WAM_CHECK(io.groups != nullptr || ranks_ == 1)
        << "a collective of " << ranks_ << " ranks without a communicator";
    return io.groups == nullptr;
  }
  dist::Communicator& operator()(const KernelIo& io) const {
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

}  // namespace wam
