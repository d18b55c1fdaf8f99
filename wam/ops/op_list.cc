#include "wam/ops/op_list.h"

namespace wam {

std::vector<const OpDef*> all_ops() {
  return {
#define WAM_OP(name, stem, cpu, cuda) &name##_op,
#include "wam/ops/op_list.inc"
#undef WAM_OP
  };
}

const OpDef* find_op(std::string_view name) {
  for (const OpDef* op : all_ops()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

}  // namespace wam
