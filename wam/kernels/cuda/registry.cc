#include <algorithm>
#include <vector>

#include "wam/kernels/kernel.h"

namespace wam {

// Declarations and a table from the op list; a stem without a CUDA kernel is left out.
#define WAM_DECLARE_0(name)
#define WAM_DECLARE_1(name) extern const KernelDef name##_cuda;
#define WAM_OP(name, stem, cpu, cuda) WAM_DECLARE_##cuda(name)
#include "wam/ops/op_list.inc"
#undef WAM_OP

const KernelDef* find_cuda_kernel(std::string_view op) {
  static const std::vector<const KernelDef*> table = {
#define WAM_ENTRY_0(name)
#define WAM_ENTRY_1(name) &name##_cuda,
#define WAM_OP(name, stem, cpu, cuda) WAM_ENTRY_##cuda(name)
#include "wam/ops/op_list.inc"
#undef WAM_OP
  };
  const auto found = std::ranges::lower_bound(table, op, {}, &KernelDef::op);
  return found != table.end() && (*found)->op == op ? *found : nullptr;
}

}  // namespace wam
