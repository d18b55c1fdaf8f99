#include <cuda_runtime_api.h>

#include <algorithm>

#include "wam/base/error.h"
#include "wam/dist/device_groups.h"

namespace wam::dist {
namespace {

void demand(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw DeviceError({.where = "collectives through host memory",
                     .what = std::string(what) + " failed",
                     .got = cudaGetErrorString(status),
                     .remedy = "Run again; if it comes back, report it with this line."});
}

// Page-locked memory that grows.
class Pinned {
 public:
  Pinned() = default;
  ~Pinned() { cudaFreeHost(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void* get(int64_t bytes) {
    if (bytes <= size_) return data_;
    cudaFreeHost(data_);
    data_ = nullptr;
    demand(cudaMallocHost(&data_, static_cast<size_t>(bytes)), "cudaMallocHost");
    size_ = bytes;
    return data_;
  }

 private:
  void* data_ = nullptr;
  int64_t size_ = 0;
};

class StagedCommunicator final : public Communicator {
 public:
  explicit StagedCommunicator(std::shared_ptr<Communicator> host) : host_(std::move(host)) {}
  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  CommStats stats() const override { return host_->stats(); }
  void barrier() override { host_->barrier(); }

  void all_gather(const void* in, void* out, int64_t bytes, void* stream) override {
    void* all = whole_.get(size() * bytes);
    fetch(in, part_.get(bytes), bytes, stream);
    host_->all_gather(part_.get(bytes), all, bytes, nullptr);
    store(all, out, size() * bytes, stream);
  }
  void reduce_scatter(const void* in, void* out, int64_t count, const Reduction& reduction,
                      void* stream) override {
    const int64_t bytes = count * size_bytes(reduction.dtype);
    fetch(in, whole_.get(size() * bytes), size() * bytes, stream);
    host_->reduce_scatter(whole_.get(0), part_.get(bytes), count, reduction, nullptr);
    store(part_.get(0), out, bytes, stream);
  }
  void all_reduce(const void* in, void* out, int64_t count, const Reduction& reduction,
                  void* stream) override {
    const int64_t bytes = count * size_bytes(reduction.dtype);
    fetch(in, whole_.get(bytes), bytes, stream);
    host_->all_reduce(whole_.get(0), whole_.get(0), count, reduction, nullptr);
    store(whole_.get(0), out, bytes, stream);
  }
  void broadcast(void* data, int64_t bytes, int root, void* stream) override {
    if (rank() == root) fetch(data, whole_.get(bytes), bytes, stream);
    host_->broadcast(whole_.get(bytes), bytes, root, nullptr);
    store(whole_.get(0), data, bytes, stream);
  }

 private:
  static cudaStream_t cuda(void* stream) { return static_cast<cudaStream_t>(stream); }
  static void fetch(const void* from, void* to, int64_t bytes, void* stream) {
    demand(
        cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, cuda(stream)),
        "a copy");
    demand(cudaStreamSynchronize(cuda(stream)), "what the collective waits for");
  }
  // The staging memory is used again at once.
  static void store(const void* from, void* to, int64_t bytes, void* stream) {
    demand(
        cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, cuda(stream)),
        "a copy");
    demand(cudaStreamSynchronize(cuda(stream)), "a copy");
  }

  std::shared_ptr<Communicator> host_;
  Pinned whole_, part_;
};

}  // namespace

std::shared_ptr<const Groups> make_staged_groups(const Mesh& mesh,
                                                 std::shared_ptr<Transport> transport,
                                                 const HostCommunicatorOptions& options) {
  const auto host = make_host_groups(mesh, std::move(transport), options);
  const auto stage = [](const std::shared_ptr<Communicator>& c) {
    return std::make_shared<StagedCommunicator>(c);
  };
  return std::make_shared<Groups>(
      Groups{mesh, stage(host->world), stage(host->shard), stage(host->replica)});
}

}  // namespace wam::dist
