// Replays a Program on a CUDA device: kernel by kernel, or, from the second run on, as one captured
// graph of the same launches. The first run of graph mode is streamed, so that libraries load what
// they need before anything is captured.
#pragma once

#include <memory>
#include <vector>

#include "wam/exec/cuda_memory.h"

namespace wam {

std::unique_ptr<Executor> make_cuda_executor(const Program& program,
                                             std::shared_ptr<CudaMemory> memory,
                                             const ExecOptions& options);

}  // namespace wam
