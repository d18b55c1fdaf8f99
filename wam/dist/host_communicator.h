// Collectives on host memory over a Transport. Every rank sends its parts straight to whoever adds
// them; the receiver adds in rank order. Bytes each rank receives, for n bytes in all: all_gather
// and reduce_scatter (N-1)/N n, all_reduce 2 (N-1)/N n.
#pragma once

#include <memory>
#include <vector>

#include "wam/dist/communicator.h"
#include "wam/dist/progress.h"
#include "wam/dist/transport.h"

namespace wam::dist {

struct HostCommunicatorOptions {
  // Most bytes a rank sends to another at once in a reduction: scratch is N - 1 times as much.
  int64_t bucket_bytes = int64_t{4} << 20;
  Progress* progress = nullptr;  // not owned; null: nobody looks
};

class HostCommunicator final : public Communicator {
 public:
  // `members`: ranks of the transport that make the group, ascending; the transport's own is one.
  HostCommunicator(std::shared_ptr<Transport> transport, std::vector<int> members,
                   HostCommunicatorOptions options = {});

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  void all_gather(const void* in, void* out, int64_t bytes, void* stream) override;
  void reduce_scatter(const void* in, void* out, int64_t count, const Reduction& reduction,
                      void* stream) override;
  void all_reduce(const void* in, void* out, int64_t count, const Reduction& reduction,
                  void* stream) override;
  void broadcast(void* data, int64_t bytes, int root, void* stream) override;
  void barrier() override;
  CommStats stats() const override { return stats_; }

 private:
  class Scope;
  // Part r of `count` elements: begins at r * ceil(count / size).
  struct Part {
    int64_t begin = 0, count = 0;
  };
  Part part(int64_t count, int rank) const;
  template <typename T, typename Acc>
  void reduce(const T* in, T* out, int64_t count, int64_t stride, bool bf16_wire, bool scatter);
  template <typename T, typename Acc, typename Wire>
  void reduce_segment(const T* in, T* out, const std::vector<Part>& parts);
  void exchange(const std::vector<Outgoing>& out, const std::vector<Incoming>& in);

  std::shared_ptr<Transport> transport_;
  std::vector<int> members_;
  HostCommunicatorOptions options_;
  int rank_ = 0;
  CommStats stats_;
  std::vector<std::byte> received_, sent_;  // scratch, grown once
};

}  // namespace wam::dist
