// Bytes between ranks. What collectives on the CPU are made of, so that their bits do not depend on
// what carries them: threads of one process, MPI, or sockets.
#pragma once

#include <cstdint>
#include <span>

namespace wam::dist {

struct Outgoing {
  int peer = 0;
  const void* data = nullptr;
  int64_t bytes = 0;
};
struct Incoming {
  int peer = 0;
  void* data = nullptr;
  int64_t bytes = 0;
};

// One rank's end. Used by one thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Sends and receives everything at once and waits for all of it; at most one piece each way per
  // peer, none to oneself. Messages of two ranks arrive in the order of their calls. CommError if a
  // peer's message has another size (the ranks then run different programs) or the peer is gone.
  virtual void exchange(std::span<const Outgoing> out, std::span<const Incoming> in) = 0;
};

// Throws the CommError for a message whose size is not what the receiver expects.
[[noreturn]] void throw_size_mismatch(int rank, int peer, int64_t got, int64_t expected);

}  // namespace wam::dist
