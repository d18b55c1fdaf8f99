#include "wam/dist/watchdog.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

namespace wam::dist {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

enum class Kind : int32_t { kBeat = 1, kLeave, kReport, kVerdict };

// What goes over the wire: of a fixed size, so that a reader never has to trust a length.
struct Message {
  uint32_t magic = kMagic;
  Kind kind = Kind::kBeat;
  int64_t step = 0, num_collectives = 0, ticks = 0;
  char phase[48] = {}, collective[32] = {};
  char text[400] = {};
  static constexpr uint32_t kMagic = 0x57414d57;  // "WAMW"
};

template <size_t N>
void copy_text(char (&to)[N], const char* from) {
  std::strncpy(to, from == nullptr ? "" : from, N - 1);
  to[N - 1] = 0;
}

Message beat_of(const Progress& progress) {
  Message message;
  message.step = progress.step.load(std::memory_order_relaxed);
  message.num_collectives = progress.num_collectives.load(std::memory_order_relaxed);
  message.ticks = progress.ticks.load(std::memory_order_relaxed);
  copy_text(message.phase, progress.phase.load(std::memory_order_relaxed));
  copy_text(message.collective, progress.collective.load(std::memory_order_relaxed));
  return message;
}

std::string place_text(const Message& m) {
  std::string text = fmt::format("step {}, {}", m.step, m.phase);
  if (m.collective[0] != 0)
    text += fmt::format(", in {} number {}", m.collective, m.num_collectives);
  return text;
}

// Another rank as this one knows it.
struct Peer {
  int rank = 0;
  FileDescriptor fd;
  Message last;
  double heard = 0, moved = 0;  // when; `moved`: when its ticks last grew
  bool left = false;
  char buffer[sizeof(Message)] = {};
  size_t filled = 0;
};

}  // namespace

class Watchdog::Impl {
 public:
  Impl(Star star, const Progress& progress, WatchdogOptions options)
      : rank_(star.rank), size_(star.size), progress_(progress), options_(std::move(options)) {
    for (size_t i = 0; i < star.sockets.size(); ++i) {
      if (star.sockets[i].get() < 0) continue;
      Peer peer;
      peer.rank = star.rank == 0 ? static_cast<int>(i) : 0;
      peer.fd = std::move(star.sockets[i]);
      peer.heard = peer.moved = now();
      peers_.push_back(std::move(peer));
    }
    thread_ = std::thread([this] { run(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    if (thread_.joinable()) thread_.join();
  }

  void leave() {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
      const Message message = make(Kind::kLeave);
      for (Peer& peer : peers_) send(peer, message);
    }
    thread_.join();
  }

  void report(const std::string& error) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    Message message = make(rank_ == 0 ? Kind::kVerdict : Kind::kReport);
    const std::string text = rank_ == 0 ? verdict_of_report(0, message, error) : error;
    copy_text(message.text, text.c_str());
    for (Peer& peer : peers_) send(peer, message);
  }

  void await_verdict() {
    const double end = now() + options_.silence_seconds + 4 * options_.beat_seconds;
    while (now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

 private:
  Message make(Kind kind) const {
    Message message = beat_of(progress_);
    message.kind = kind;
    return message;
  }

  static std::string verdict_of_report(int rank, const Message& m, const std::string& error) {
    return fmt::format("[rank {}] ended with an error ({}): {}", rank, place_text(m), error);
  }

  // A peer that takes no more bytes will be found silent.
  static void send(Peer& peer, const Message& message) {
    if (peer.fd.get() >= 0 && !peer.left)
      send_all(peer.fd.get(), &message, sizeof message, after_seconds(1));
  }

  void run() {
    double next_beat = 0;
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (stop_ || ended_ || is_over()) return;
        const double time = now();
        if (time >= next_beat) {
          const Message beat = make(Kind::kBeat);
          for (Peer& peer : peers_) send(peer, beat);
          next_beat = time + options_.beat_seconds;
        }
        judge(time);
        if (ended_) return;
      }
      wait_for_messages();
    }
  }

  bool is_over() const {
    return leaving_ && std::ranges::all_of(peers_, [](const Peer& peer) { return peer.left; });
  }

  void wait_for_messages() {
    std::vector<pollfd> entries;
    for (const Peer& peer : peers_) {
      if (!peer.left) entries.push_back({peer.fd.get(), POLLIN, 0});
    }
    const auto timeout = static_cast<int>(std::max(10.0, 500 * options_.beat_seconds));
    if (poll(entries.data(), entries.size(), timeout) <= 0) return;
    const std::lock_guard lock(mutex_);
    for (Peer& peer : peers_) {
      if (!ended_ && !peer.left) read(peer);
    }
  }

  void read(Peer& peer) {
    for (;;) {
      const ssize_t got = recv(peer.fd.get(), peer.buffer + peer.filled,
                               sizeof(Message) - peer.filled, MSG_DONTWAIT);
      if (got > 0) {
        peer.filled += static_cast<size_t>(got);
        if (peer.filled < sizeof(Message)) continue;
        peer.filled = 0;
        Message message;
        std::memcpy(&message, peer.buffer, sizeof message);
        handle(peer, message);
        if (ended_ || peer.left) return;
        continue;
      }
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (got < 0 && errno == EINTR) continue;
      if (leaving_) {
        peer.left = true;  // nothing is expected of it any more
      } else {
        condemn(fmt::format("[rank {}] died ({}; its connection closed)", peer.rank,
                            place_text(peer.last)));
      }
      return;
    }
  }

  void handle(Peer& peer, Message& message) {
    message.phase[sizeof message.phase - 1] = message.collective[sizeof message.collective - 1] = 0;
    message.text[sizeof message.text - 1] = 0;
    if (message.magic != Message::kMagic) return;
    const double time = now();
    peer.heard = time;
    if (message.ticks != peer.last.ticks || message.num_collectives != peer.last.num_collectives) {
      peer.moved = time;
    }
    peer.last = message;
    switch (message.kind) {
      case Kind::kBeat:
        return;
      case Kind::kLeave:
        peer.left = true;
        return;
      case Kind::kReport:
        return condemn(verdict_of_report(peer.rank, message, message.text));
      case Kind::kVerdict:
        return conclude(message.text);
    }
  }

  void judge(double time) {
    for (const Peer& peer : peers_) {
      if (peer.left || time - peer.heard <= options_.silence_seconds) continue;
      return condemn(fmt::format("[rank {}] gives no sign of life for {:.1f} s ({})", peer.rank,
                                 time - peer.heard, place_text(peer.last)));
    }
    if (rank_ == 0) judge_hang(time);
  }

  // All breathe and none gets on: to blame is a rank that is not waiting in a collective, or else
  // the one that has begun the fewest of them.
  void judge_hang(double time) {
    const int64_t ticks = progress_.ticks.load(std::memory_order_relaxed);
    if (ticks != own_ticks_) {
      own_ticks_ = ticks;
      own_moved_ = time;
    }
    double newest = own_moved_;
    for (const Peer& peer : peers_) newest = std::max(newest, peer.moved);
    if (leaving_ || time - newest <= options_.hang_seconds) return;
    const Message own = beat_of(progress_);
    int rank = 0;
    const Message* worst = &own;
    const auto lateness = [](const Message& m) {
      return std::pair(m.collective[0] == 0 ? 0 : 1, m.num_collectives);
    };
    for (const Peer& peer : peers_) {
      if (peer.left || lateness(peer.last) >= lateness(*worst)) continue;
      worst = &peer.last;
      rank = peer.rank;
    }
    condemn(fmt::format("[rank {}] hangs for {:.1f} s while the others wait ({})", rank,
                        time - newest, place_text(*worst)));
  }

  // Rank 0 tells all; the others can only speak for themselves.
  void condemn(const std::string& verdict) {
    if (rank_ == 0) {
      Message message = make(Kind::kVerdict);
      copy_text(message.text, verdict.c_str());
      for (Peer& peer : peers_) send(peer, message);
    }
    conclude(verdict);
  }

  void conclude(const std::string& verdict) {
    ended_ = true;
    if (options_.on_failure) return options_.on_failure(verdict);
    std::string line = fmt::format(
        "wam: {}. This is rank {} of {}; the newest checkpoint is good: "
        "start again with --resume.\n",
        verdict.substr(0, verdict.find_last_not_of('.') + 1), rank_, size_);
    for (char& c : line) {
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n') c = ' ';
    }
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    _exit(5);
  }

  int rank_, size_;
  const Progress& progress_;
  WatchdogOptions options_;
  std::mutex mutex_;  // guards everything below
  std::vector<Peer> peers_;
  bool leaving_ = false, stop_ = false, ended_ = false;
  int64_t own_ticks_ = -1;
  double own_moved_ = 0;
  std::thread thread_;
};

Watchdog::Watchdog(Star star, const Progress& progress, WatchdogOptions options)
    : impl_(std::make_unique<Impl>(std::move(star), progress, std::move(options))) {}
Watchdog::~Watchdog() = default;
void Watchdog::leave() { impl_->leave(); }
void Watchdog::report(const std::string& error) { impl_->report(error); }
void Watchdog::await_verdict() { impl_->await_verdict(); }

}  // namespace wam::dist
