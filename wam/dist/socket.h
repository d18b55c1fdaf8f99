// TCP connections with deadlines. Failures are CommError naming the address.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "wam/base/file_descriptor.h"

namespace wam::dist {

using Deadline = std::chrono::steady_clock::time_point;
Deadline after_seconds(double seconds);

struct Endpoint {
  std::string host;
  int port = 0;
  std::string text() const { return host + ":" + std::to_string(port); }
};

struct Listener {
  FileDescriptor fd;
  int port = 0;
};
// Listens on all interfaces; port 0 takes a free one.
Listener listen_on(int port);
// The next connection, or a descriptor of -1 at the deadline.
FileDescriptor accept_until(const Listener& listener, Deadline deadline);
// Tries again until somebody listens there.
FileDescriptor connect_until(const Endpoint& to, Deadline deadline);
// One try each of several addresses of the same listener, round after round.
FileDescriptor connect_any(const std::vector<Endpoint>& to, Deadline deadline);
// Numeric address of the other end.
std::string peer_address(int fd);
// Addresses under which other machines may reach this one, the loop-back address last.
std::vector<std::string> own_addresses();

// All bytes or false: the other end closed, or the deadline passed.
bool send_all(int fd, const void* data, int64_t bytes, Deadline deadline);
bool receive_all(int fd, void* data, int64_t bytes, Deadline deadline);

}  // namespace wam::dist
