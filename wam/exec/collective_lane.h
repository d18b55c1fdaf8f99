// Runs a program's collectives on a CUDA stream of their own, ordered against its other steps by
// events. Can be captured: whatever is begun joins the main stream again with the last step.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>
#include <vector>

#include "wam/plan/program.h"

namespace wam {

class CollectiveLane {
 public:
  explicit CollectiveLane(const Program& program);
  ~CollectiveLane();
  CollectiveLane(const CollectiveLane&) = delete;
  CollectiveLane& operator=(const CollectiveLane&) = delete;

  // Before and after the launches of step `i`, for every step in order. `main` is the stream of all
  // other steps; begin() gives that of this one.
  cudaStream_t begin(size_t i, cudaStream_t main);
  void end(size_t i, cudaStream_t main);

 private:
  std::vector<int32_t> awaited_;
  std::vector<cudaEvent_t> done_;  // by step; null for those that are no collectives
  std::optional<size_t> last_;
  cudaEvent_t reached_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace wam
