#include "wam/exec/cuda.h"
#include "wam/kernels/cuda/workspace.h"

namespace wam {
namespace {

int64_t workspace_bytes(const Step& step) {
  std::vector<TensorType> in, out;
  for (const Operand& operand : step.inputs) in.push_back(operand.type);
  for (const Operand& operand : step.outputs) out.push_back(operand.type);
  return cuda_workspace_bytes(step.op, {in, out, step.attrs});
}

}  // namespace

const Target& cuda_target() {
  static const Target target{"cuda", has_cuda_kernel, workspace_bytes, /*collectives_overlap=*/true};
  return target;
}

}  // namespace wam
