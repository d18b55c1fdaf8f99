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

// Times of collectives on the device, waiting for other ranks included: a pair of events around
// each. Those inside a captured graph are recorded anew by every replay.
class Spans {
 public:
  Spans() = default;
  ~Spans() {
    for (auto* list : {&streamed_, &captured_, &free_}) {
      for (const Span& span : *list) {
        cudaEventDestroy(span.begin);
        cudaEventDestroy(span.end);
      }
    }
  }
  Spans(const Spans&) = delete;
  Spans& operator=(const Spans&) = delete;

  template <typename F>
  void around(cudaStream_t stream, const F& call) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    const bool captured = status == cudaStreamCaptureStatusActive;
    const unsigned flags = captured ? cudaEventRecordExternal : cudaEventRecordDefault;
    const Span span = take();
    cudaEventRecordWithFlags(span.begin, stream, flags);
    call();
    cudaEventRecordWithFlags(span.end, stream, flags);
    (captured ? captured_ : streamed_).push_back(span);
  }

  // Of streamed calls since the last time, as far as they have ended, and of the last replay of each
  // captured one.
  double collect() {
    double seconds = 0;
    std::vector<Span> running;
    for (const Span& span : streamed_) {
      const bool ended = add(span, seconds);
      (ended ? free_ : running).push_back(span);
    }
    streamed_ = std::move(running);
    for (const Span& span : captured_) add(span, seconds);
    return seconds;
  }

 private:
  struct Span {
    cudaEvent_t begin = nullptr, end = nullptr;
  };
  Span take() {
    Span span;
    if (!free_.empty()) {
      span = free_.back();
      free_.pop_back();
    } else {
      cudaEventCreate(&span.begin);
      cudaEventCreate(&span.end);
    }
    return span;
  }
  static bool add(const Span& span, double& seconds) {
    float ms = 0;
    if (cudaEventElapsedTime(&ms, span.begin, span.end) != cudaSuccess) {
      cudaGetLastError();  // not there yet: no fault
      return false;
    }
    seconds += 1e-3 * static_cast<double>(ms);
    return true;
  }
  std::vector<Span> streamed_, captured_, free_;
};

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
  // Seconds are the device's: after a step has ended, the difference to those before it are the
  // step's (of a program replayed several times, the last replay's).
  CommStats stats() const override {
    stats_.seconds += spans_.collect();
    return stats_;
  }

  void all_gather(const void* in, void* out, int64_t bytes, void* stream) override {
    run((size_ - 1) * bytes, stream, "ncclAllGather", [&] {
      return ncclAllGather(in, out, static_cast<size_t>(bytes), ncclUint8, comm_, cuda(stream));
    });
  }
  void reduce_scatter(const void* in, void* out, int64_t count, const Reduction& reduction,
                      void* stream) override {
    run((size_ - 1) * count * size_bytes(reduction.dtype), stream, "ncclReduceScatter", [&] {
      return ncclReduceScatter(in, out, static_cast<size_t>(count), type_of(reduction), ncclSum, comm_,
                               cuda(stream));
    });
  }
  void all_reduce(const void* in, void* out, int64_t count, const Reduction& reduction,
                  void* stream) override {
    run(2 * (size_ - 1) * count * size_bytes(reduction.dtype) / size_, stream, "ncclAllReduce", [&] {
      return ncclAllReduce(in, out, static_cast<size_t>(count), type_of(reduction), ncclSum, comm_,
                           cuda(stream));
    });
  }
  void broadcast(void* data, int64_t bytes, int root, void* stream) override {
    run(bytes, stream, "ncclBroadcast", [&] {
      return ncclBroadcast(data, data, static_cast<size_t>(bytes), ncclUint8, root, comm_, cuda(stream));
    });
  }
  void barrier() override { WAM_CHECK(false) << "barriers are the host's"; }

 private:
  static cudaStream_t cuda(void* stream) { return static_cast<cudaStream_t>(stream); }
  // Counts what is enqueued; a captured graph enqueues once and runs often.
  template <typename F>
  void run(int64_t bytes, void* stream, const char* what, const F& call) {
    ++stats_.calls;
    stats_.bytes_received += bytes;
    if (progress_ != nullptr) {
      progress_->num_collectives.fetch_add(1, std::memory_order_relaxed);
      progress_->ticks.fetch_add(1, std::memory_order_relaxed);
    }
    spans_.around(cuda(stream), [&] { demand(call(), what); });
  }

  int rank_, size_;
  Progress* progress_;
  ncclComm_t comm_ = nullptr;
  mutable CommStats stats_;
  mutable Spans spans_;
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
