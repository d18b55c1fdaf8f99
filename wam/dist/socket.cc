#include "wam/dist/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "wam/base/error.h"

namespace wam::dist {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what, int error_number,
                       const std::string& remedy) {
  throw CommError({.where = where,
                   .what = what,
                   .got = error_number == 0 ? "" : std::strerror(error_number),
                   .remedy = remedy});
}

int milliseconds_left(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 3'600'000));
}

// True once the descriptor is ready; false at the deadline.
bool wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, milliseconds_left(deadline));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

void set_options(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// -1 if nobody answers.
int connect_once(const sockaddr* address, socklen_t length, Deadline deadline) {
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  int error = 0;
  socklen_t size = sizeof error;
  if (connect(fd, address, length) != 0 && errno != EINPROGRESS) error = errno;
  if (error == 0 && !wait_for(fd, POLLOUT, deadline)) error = ETIMEDOUT;
  if (error == 0) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) {
    set_options(fd);
    return fd;
  }
  close(fd);
  return -1;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
AddressList resolve(const Endpoint& to) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int status = getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &list);
  if (status != 0) return {nullptr, freeaddrinfo};
  return {list, freeaddrinfo};
}

}  // namespace

Deadline after_seconds(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(seconds));
}

Listener listen_on(int port) {
  const std::string where = "port " + std::to_string(port);
  Listener listener{FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
                    0};
  if (listener.fd.get() < 0)
    fail(where, "cannot make a socket", errno, "Check the process's limits.");
  const int on = 1;
  setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.fd.get(), 512) != 0) {
    fail(where, "cannot listen", errno,
         "Choose another MASTER_PORT, or end the process that uses it.");
  }
  socklen_t length = sizeof address;
  getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  listener.port = ntohs(address.sin_port);
  return listener;
}

FileDescriptor accept_until(const Listener& listener, Deadline deadline) {
  while (wait_for(listener.fd.get(), POLLIN, deadline)) {
    FileDescriptor fd(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.get() < 0) continue;  // the other end has given up meanwhile
    set_options(fd.get());
    return fd;
  }
  return FileDescriptor();
}

FileDescriptor connect_until(const Endpoint& to, Deadline deadline) {
  return connect_any({to}, deadline);
}

FileDescriptor connect_any(const std::vector<Endpoint>& to, Deadline deadline) {
  bool resolved = false;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const Endpoint& endpoint : to) {
      const AddressList list = resolve(endpoint);
      for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
        resolved = true;
        const int fd =
            connect_once(at->ai_addr, at->ai_addrlen, std::min(deadline, after_seconds(3)));
        if (fd >= 0) return FileDescriptor(fd);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fail(to.front().text(), resolved ? "nobody answers at the meeting point" : "this host is unknown",
       0, "Check MASTER_ADDR and MASTER_PORT, and that rank 0 runs.");
}

std::string peer_address(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char text[NI_MAXHOST] = "";
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), length, text, sizeof text, nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "";
  }
  return text;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) == 0) {
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
      if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
      if ((at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
      char text[INET_ADDRSTRLEN] = "";
      const auto* address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
      if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr) {
        addresses.emplace_back(text);
      }
    }
    freeifaddrs(list);
  }
  addresses.emplace_back("127.0.0.1");
  return addresses;
}

bool send_all(int fd, const void* data, int64_t bytes, Deadline deadline) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(fd, at, static_cast<size_t>(bytes), MSG_NOSIGNAL);
    if (sent > 0) {
      at += sent;
      bytes -= sent;
    } else if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      return false;
    } else if (!wait_for(fd, POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

bool receive_all(int fd, void* data, int64_t bytes, Deadline deadline) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(fd, at, static_cast<size_t>(bytes), 0);
    if (got > 0) {
      at += got;
      bytes -= got;
    } else if (got == 0) {
      return false;
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      return false;
    } else if (!wait_for(fd, POLLIN, deadline)) {
      return false;
    }
  }
  return true;
}

}  // namespace wam::dist
