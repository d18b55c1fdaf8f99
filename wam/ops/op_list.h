// All ops by name.
#pragma once

#include <string_view>
#include <vector>

#include "wam/graph/op_def.h"

namespace wam {

#define WAM_OP(name, stem, cpu, cuda) extern const OpDef name##_op;
#include "wam/ops/op_list.inc"
#undef WAM_OP

const OpDef* find_op(std::string_view name);  // null if there is none
std::vector<const OpDef*> all_ops();          // sorted by name

}  // namespace wam
