#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstring>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/dist/device_groups.h"

namespace wam::dist {
namespace {

void demand(ncclResult_t status, const char* what) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  throw CommError(
      {.where = "nccl",
       .what = std::string(what) + " failed",
       .got = std::string(ncclGetErrorString(status)) + " " + ncclGetLastError(nullptr),
       .remedy = "Run with NCCL_DEBUG=INFO to learn more; the newest checkpoint is good."});
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF64:
      return ncclFloat64;
    default:
      WAM_CHECK(false) << "sums of " << name(dtype);
  }
  return ncclFloat32;
}

// The terms go as they are: a step in which they shall be narrower casts them itself.
ncclDataType_t type_of(const Reduction& reduction) {
  WAM_CHECK(reduction.wire != DType::kBF16 || reduction.dtype == DType::kBF16)
      << "float32 over a bf16 wire";
  return type_of(reduction.dtype);
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const std::vector<int>& members, int rank, std::shared_ptr<Transport> transport,
                   Progress* progress)
      : rank_(rank), size_(static_cast<int>(members.size())), progress_(progress) {
    ncclUniqueId id{};
    HostCommunicator host(std::move(transport), members);
    if (rank == 0) demand(ncclGetUniqueId(&id), "ncclGetUniqueId");
    host.broadcast(&id, sizeof id, 0, nullptr);
    demand(ncclCommInitRank(&comm_, size_, id, rank_), "ncclCommInitRank");
  }
  // Peers may be gone: nothing is waited for.
  ~NcclCommunicator() override {
    if (comm_ != nullptr) ncclCommAbort(comm_);
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool can_be_captured() const override { return true; }
  CommStats stats() const override { return stats_; }

  void all_gather(const void* in, void* out, int64_t bytes, void* stream) override {
    begin((size_ - 1) * bytes);
    demand(ncclAllGather(in, out, static_cast<size_t>(bytes), ncclUint8, comm_, cuda(stream)),
           "ncclAllGather");
  }
  void reduce_scatter(const void* in, void* out, int64_t count, const Reduction& reduction,
                      void* stream) override {
    begin((size_ - 1) * count * size_bytes(reduction.dtype));
    demand(ncclReduceScatter(in, out, static_cast<size_t>(count), type_of(reduction), ncclSum,
                             comm_, cuda(stream)),
           "ncclReduceScatter");
  }
  void all_reduce(const void* in, void* out, int64_t count, const Reduction& reduction,
                  void* stream) override {
    begin(2 * (size_ - 1) * count * size_bytes(reduction.dtype) / size_);
    demand(ncclAllReduce(in, out, static_cast<size_t>(count), type_of(reduction), ncclSum, comm_,
                         cuda(stream)),
           "ncclAllReduce");
  }
  void broadcast(void* data, int64_t bytes, int root, void* stream) override {
    begin(bytes);
    demand(
        ncclBroadcast(data, data, static_cast<size_t>(bytes), ncclUint8, root, comm_, cuda(stream)),
        "ncclBroadcast");
  }
  void barrier() override { WAM_CHECK(false) << "barriers are the host's"; }

 private:
  static cudaStream_t cuda(void* stream) { return static_cast<cudaStream_t>(stream); }
  // Counts what is enqueued; a captured graph enqueues once and runs often.
  void begin(int64_t bytes) {
    ++stats_.calls;
    stats_.bytes_received += bytes;
    if (progress_ == nullptr) return;
    progress_->num_collectives.fetch_add(1, std::memory_order_relaxed);
    progress_->ticks.fetch_add(1, std::memory_order_relaxed);
  }

  int rank_, size_;
  Progress* progress_;
  ncclComm_t comm_ = nullptr;
  CommStats stats_;
};

}  // namespace

bool has_nccl() { return true; }

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "";
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::shared_ptr<const Groups> make_nccl_groups(const Mesh& mesh,
                                               std::shared_ptr<Transport> transport,
                                               Progress* progress) {
  const auto make = [&](Axis axis) {
    return std::make_shared<NcclCommunicator>(mesh.members(axis), mesh.coordinate(axis), transport,
                                              progress);
  };
  // Each communicator takes some hundred megabytes of the GPU: axes with the same members share one.
  const auto world = make(Axis::kWorld);
  const auto make_or_share = [&](Axis axis) {
    return mesh.size(axis) == mesh.world() ? world : make(axis);
  };
  const auto shard = make_or_share(Axis::kShard);
  return std::make_shared<Groups>(Groups{mesh, world, shard, make_or_share(Axis::kReplica)});
}

}  // namespace wam::dist
