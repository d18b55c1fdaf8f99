#include "wam/exec/collective_lane.h"

#include "wam/kernels/cuda/support.h"
#include "wam/ops/op_list.h"
#include "wam/plan/overlap.h"

namespace wam {

using cuda::check;

CollectiveLane::CollectiveLane(const Program& program) : awaited_(awaited_collectives(program)) {
  done_.resize(program.steps.size());
  for (size_t i = 0; i < program.steps.size(); ++i) {
    if (!find_op(program.steps[i].op)->has(kCollective)) continue;
    check(cudaEventCreateWithFlags(&done_[i], cudaEventDisableTiming), "cudaEventCreate");
    last_ = i;
  }
  check(cudaEventCreateWithFlags(&reached_, cudaEventDisableTiming), "cudaEventCreate");
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "stream priorities");
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest), "cudaStreamCreate");
}

CollectiveLane::~CollectiveLane() {
  for (const cudaEvent_t event : done_) {
    if (event != nullptr) cudaEventDestroy(event);
  }
  cudaEventDestroy(reached_);
  cudaStreamDestroy(stream_);
}

cudaStream_t CollectiveLane::begin(size_t i, cudaStream_t main) {
  if (awaited_[i] >= 0) {
    check(cudaStreamWaitEvent(main, done_[static_cast<size_t>(awaited_[i])], 0),
          "waiting for a collective");
  }
  if (done_[i] == nullptr) return main;
  check(cudaEventRecord(reached_, main), "cudaEventRecord");
  check(cudaStreamWaitEvent(stream_, reached_, 0), "cudaStreamWaitEvent");
  return stream_;
}

void CollectiveLane::end(size_t i, cudaStream_t main) {
  if (done_[i] != nullptr) check(cudaEventRecord(done_[i], stream_), "cudaEventRecord");
  if (!last_ || i + 1 != done_.size()) return;
  check(cudaStreamWaitEvent(main, done_[*last_], 0), "cudaStreamWaitEvent");
}

}  // namespace wam
