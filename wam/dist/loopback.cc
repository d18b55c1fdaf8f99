#include "wam/dist/loopback.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "wam/base/check.h"
#include "wam/base/error.h"

namespace wam::dist {

void throw_size_mismatch(int rank, int peer, int64_t got, int64_t expected) {
  throw CommError(
      {.where = "rank " + std::to_string(rank),
       .what = "message of rank " + std::to_string(peer) + " has another size",
       .got = got < 0 ? "more" : std::to_string(got) + " bytes",
       .expected = std::to_string(expected) + " bytes",
       .remedy = "The ranks run different programs: start all from one build and config."});
}

// A message stays with its sender until the receiver has copied it.
struct Loopback::Hub {
  struct Message {
    const void* data;
    int64_t bytes;
    bool taken = false;
  };
  explicit Hub(int ranks) : size(ranks) {}
  int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Message>>> queues;  // (from, to)
  int abandoned_by = -1;

  class End final : public Transport {
   public:
    End(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return hub_->size; }

    void exchange(std::span<const Outgoing> out, std::span<const Incoming> in) override {
      std::vector<std::shared_ptr<Message>> sent;
      {
        const std::lock_guard lock(hub_->mutex);
        for (const Outgoing& piece : out) {
          WAM_CHECK(piece.peer != rank_);
          sent.push_back(std::make_shared<Message>(Message{piece.data, piece.bytes}));
          hub_->queues[{rank_, piece.peer}].push_back(sent.back());
        }
      }
      hub_->changed.notify_all();
      for (const Incoming& piece : in) receive(piece);
      std::unique_lock lock(hub_->mutex);
      for (const auto& message : sent) {
        wait(lock, [&] { return message->taken; });
      }
    }

   private:
    template <typename Condition>
    void wait(std::unique_lock<std::mutex>& lock, const Condition& condition) {
      hub_->changed.wait(lock, [&] { return condition() || hub_->abandoned_by >= 0; });
      if (condition()) return;
      throw CommError({.where = "rank " + std::to_string(rank_),
                       .what = "rank " + std::to_string(hub_->abandoned_by) + " has left",
                       .remedy = "See that rank's own error."});
    }

    void receive(const Incoming& piece) {
      std::shared_ptr<Message> message;
      {
        std::unique_lock lock(hub_->mutex);
        auto& queue = hub_->queues[{piece.peer, rank_}];
        wait(lock, [&] { return !queue.empty(); });
        message = queue.front();
        queue.pop_front();
      }
      if (message->bytes != piece.bytes) {
        throw_size_mismatch(rank_, piece.peer, message->bytes, piece.bytes);
      }
      std::memcpy(piece.data, message->data, static_cast<size_t>(piece.bytes));
      {
        const std::lock_guard lock(hub_->mutex);
        message->taken = true;
      }
      hub_->changed.notify_all();
    }

    std::shared_ptr<Hub> hub_;
    int rank_;
  };
};

Loopback::Loopback(int size) : hub_(std::make_shared<Hub>(size)) { WAM_CHECK(size >= 1) << size; }
Loopback::~Loopback() = default;

std::shared_ptr<Transport> Loopback::end(int rank) const {
  WAM_CHECK(rank >= 0 && rank < hub_->size) << rank;
  return std::make_shared<Hub::End>(hub_, rank);
}

void Loopback::abandon(int rank) {
  {
    const std::lock_guard lock(hub_->mutex);
    if (hub_->abandoned_by < 0) hub_->abandoned_by = rank;
  }
  hub_->changed.notify_all();
}

}  // namespace wam::dist
