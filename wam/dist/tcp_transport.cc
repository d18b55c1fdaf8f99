#include "wam/dist/tcp_transport.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/strings.h"

namespace wam::dist {
namespace {

constexpr uint32_t kMagic = 0x57414d54;  // "WAMT"
struct Hello {
  uint32_t magic = kMagic;
  int32_t rank = 0;
};

[[noreturn]] void peer_gone(int rank, int peer) {
  throw CommError({.where = "rank " + std::to_string(rank),
                   .what = "rank " + std::to_string(peer) + " closed its connection",
                   .remedy = "See that rank's own error; the newest checkpoint is good."});
}

class TcpTransport final : public Transport {
 public:
  TcpTransport(int rank, std::vector<FileDescriptor> sockets)
      : rank_(rank), sockets_(std::move(sockets)) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(sockets_.size()); }

  // Every message is its length, then its bytes. All moves at once, in whatever order sockets
  // allow.
  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in) override {
    std::vector<Move> moves;
    for (const Outgoing& piece : out) {
      moves.push_back({.peer = piece.peer,
                       .send = true,
                       .length = piece.bytes,
                       .bytes = piece.bytes,
                       .data = const_cast<char*>(static_cast<const char*>(piece.data))});
    }
    for (const Incoming& piece : in) {
      moves.push_back({.peer = piece.peer,
                       .send = false,
                       .length = 0,
                       .bytes = piece.bytes,
                       .data = static_cast<char*>(piece.data)});
    }
    size_t left = moves.size();
    std::vector<pollfd> polled;
    std::vector<size_t> which;
    while (left > 0) {
      for (Move& move : moves) {
        if (!move.finished && advance(move)) {
          move.finished = true;
          --left;
        }
      }
      if (left == 0) break;
      polled.clear();
      for (const Move& move : moves) {
        if (move.finished) continue;
        polled.push_back({fd(move.peer), static_cast<short>(move.send ? POLLOUT : POLLIN), 0});
      }
      const int ready = poll(polled.data(), polled.size(), 1000);
      WAM_CHECK(ready >= 0 || errno == EINTR) << errno;
    }
  }

 private:
  struct Move {
    int peer = 0;
    bool send = false;
    int64_t length = 0;  // the message's header
    int64_t bytes = 0;
    char* data = nullptr;
    int64_t done = 0;  // header and bytes together
    bool finished = false;
  };
  static constexpr int64_t kHeader = sizeof(int64_t);

  int fd(int peer) const { return sockets_[static_cast<size_t>(peer)].get(); }

  // Moves what the socket takes or has; true once the message is whole.
  bool advance(Move& move) const {
    while (move.done < kHeader + move.bytes) {
      const bool header = move.done < kHeader;
      char* at = header ? reinterpret_cast<char*>(&move.length) + move.done
                        : move.data + move.done - kHeader;
      const int64_t wanted = header ? kHeader - move.done : kHeader + move.bytes - move.done;
      const ssize_t moved =
          move.send ? ::send(fd(move.peer), at, static_cast<size_t>(wanted), MSG_NOSIGNAL)
                    : ::recv(fd(move.peer), at, static_cast<size_t>(wanted), 0);
      if (moved > 0) {
        move.done += moved;
      } else if (moved == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        peer_gone(rank_, move.peer);
      } else if (errno != EINTR) {
        return false;
      }
      if (move.done == kHeader && move.length != move.bytes) {
        throw_size_mismatch(rank_, move.peer, move.length, move.bytes);
      }
    }
    return true;
  }

  int rank_;
  std::vector<FileDescriptor> sockets_;  // by peer; the own place is empty
};

[[noreturn]] void cannot_connect(int rank, int peer, const std::string& address) {
  throw CommError(
      {.where = "rank " + std::to_string(rank),
       .what = "cannot connect with rank " + std::to_string(peer),
       .got = address,
       .remedy = "Allow TCP connections between the machines, or see that rank's own error."});
}

// "address port", by rank.
std::vector<Endpoint> exchange_endpoints(const Star& star, int port, Deadline deadline) {
  std::vector<Endpoint> endpoints;
  const std::vector<std::string> ports = gather_texts(star, std::to_string(port), deadline);
  std::vector<std::string> addresses = star.addresses;
  if (star.rank == 0) addresses[0] = "-";
  const std::vector<std::string> seen = gather_texts(star, join(addresses, " "), deadline);
  const std::vector<std::string> list = split(seen.front(), ' ');
  WAM_CHECK(list.size() == ports.size()) << list.size();
  for (size_t r = 0; r < list.size(); ++r) {
    Endpoint endpoint{list[r], 0};
    if (r == 0 && star.rank != 0) endpoint.host = peer_address(star.sockets[0].get());
    std::from_chars(ports[r].data(), ports[r].data() + ports[r].size(), endpoint.port);
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

}  // namespace

std::shared_ptr<Transport> make_tcp_transport(const Star& star, Deadline deadline) {
  const Listener listener = listen_on(0);
  const std::vector<Endpoint> endpoints = exchange_endpoints(star, listener.port, deadline);
  std::vector<FileDescriptor> sockets(static_cast<size_t>(star.size));
  for (int peer = 0; peer < star.rank; ++peer) {
    const Endpoint& to = endpoints[static_cast<size_t>(peer)];
    FileDescriptor fd = connect_until(to, deadline);
    const Hello hello{.rank = star.rank};
    if (!send_all(fd.get(), &hello, sizeof hello, deadline))
      cannot_connect(star.rank, peer, to.text());
    sockets[static_cast<size_t>(peer)] = std::move(fd);
  }
  for (int missing = star.size - 1 - star.rank; missing > 0;) {
    FileDescriptor fd = accept_until(listener, deadline);
    if (fd.get() < 0) cannot_connect(star.rank, star.size - 1, "no connection in time");
    Hello hello;
    const bool ours = receive_all(fd.get(), &hello, sizeof hello, after_seconds(5)) &&
                      hello.magic == kMagic && hello.rank > star.rank && hello.rank < star.size &&
                      sockets[static_cast<size_t>(hello.rank)].get() < 0;
    if (!ours) continue;
    sockets[static_cast<size_t>(hello.rank)] = std::move(fd);
    --missing;
  }
  return std::make_shared<TcpTransport>(star.rank, std::move(sockets));
}

}  // namespace wam::dist
