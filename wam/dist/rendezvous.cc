#include "wam/dist/rendezvous.h"

#include <cstring>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/log.h"
#include "wam/base/strings.h"

namespace wam::dist {
namespace {

constexpr uint32_t kMagic = 0x57414d31;  // "WAM1"
constexpr uint32_t kMaxText = 64 << 10;

struct Hello {
  uint32_t magic = kMagic;
  int32_t rank = 0, size = 0;
};
enum class Answer : int32_t { kWelcome = 1, kRankTaken = 2, kOtherSize = 3, kNobodyMissing = 4 };
struct Reply {
  uint32_t magic = kMagic;
  Answer answer = Answer::kWelcome;
  int32_t size = 0;
};

[[noreturn]] void fail(int rank, const std::string& what, const std::string& got,
                       const std::string& expected, const std::string& remedy) {
  throw CommError({.where = "meeting of ranks, rank " + std::to_string(rank),
                   .what = what,
                   .got = got,
                   .expected = expected,
                   .remedy = remedy});
}

void reply(int fd, Answer answer, int size) {
  const Reply message{.answer = answer, .size = size};
  send_all(fd, &message, sizeof message, after_seconds(5));
}

std::string missing_ranks(const Star& star) {
  std::vector<std::string> missing;
  for (int r = 1; r < star.size; ++r) {
    if (star.sockets[static_cast<size_t>(r)].get() < 0) missing.push_back(std::to_string(r));
  }
  return join(missing, ", ");
}

// A connection that says who it is in time, or none.
bool read_hello(int fd, Hello& hello) {
  return receive_all(fd, &hello, sizeof hello, after_seconds(5)) && hello.magic == kMagic;
}

void dismiss_all(const Star& star, Answer answer) {
  for (const FileDescriptor& socket : star.sockets) {
    if (socket.get() >= 0) reply(socket.get(), answer, star.size);
  }
}

}  // namespace

Star meet_as_first(int size, Listener listener, Deadline deadline) {
  Star star{.rank = 0, .size = size, .sockets = {}, .addresses = {}};
  star.sockets.resize(static_cast<size_t>(size));
  star.addresses.resize(static_cast<size_t>(size));
  for (int present = 1; present < size;) {
    FileDescriptor fd = accept_until(listener, deadline);
    if (fd.get() < 0) {
      fail(0, "not all ranks came in time", "missing: " + missing_ranks(star),
           std::to_string(size) + " ranks",
           "Look for the errors of the missing ones, and start all anew.");
    }
    Hello hello;
    if (!read_hello(fd.get(), hello)) {
      log_warn("meeting of ranks: a connection from " + peer_address(fd.get()) +
               " is none of ours, closed");
      continue;
    }
    if (hello.size != size) {
      reply(fd.get(), Answer::kOtherSize, size);
      dismiss_all(star, Answer::kOtherSize);
      fail(0, "a process belongs to a run of another size", std::to_string(hello.size) + " ranks",
           std::to_string(size),
           "Start all processes with the same WORLD_SIZE, or use another MASTER_PORT.");
    }
    if (hello.rank < 1 || hello.rank >= size ||
        star.sockets[static_cast<size_t>(hello.rank)].get() >= 0) {
      reply(fd.get(), Answer::kRankTaken, size);
      dismiss_all(star, Answer::kRankTaken);
      fail(0, "two processes claim one rank, or one that does not exist",
           std::to_string(hello.rank), "ranks 0 to " + std::to_string(size - 1) + ", each once",
           "Give every process its own RANK.");
    }
    star.addresses[static_cast<size_t>(hello.rank)] = peer_address(fd.get());
    star.sockets[static_cast<size_t>(hello.rank)] = std::move(fd);
    ++present;
  }
  dismiss_all(star, Answer::kWelcome);
  return star;
}

Star meet(int rank, int size, const std::vector<Endpoint>& first, Deadline deadline) {
  WAM_CHECK(rank >= 1 && rank < size) << rank << " of " << size;
  Star star{.rank = rank, .size = size, .sockets = {}, .addresses = {}};
  FileDescriptor fd = connect_any(first, deadline);
  const Hello hello{.rank = rank, .size = size};
  Reply answer;
  if (!send_all(fd.get(), &hello, sizeof hello, deadline) ||
      !receive_all(fd.get(), &answer, sizeof answer, deadline) || answer.magic != kMagic) {
    fail(rank, "rank 0 at " + first.front().text() + " ended the meeting", "", "",
         "See rank 0's own error; if there is none, another program uses MASTER_PORT.");
  }
  if (answer.answer == Answer::kRankTaken) {
    fail(rank, "two processes claim one rank, or one that does not exist", "", "every rank once",
         "Give every process its own RANK.");
  }
  if (answer.answer != Answer::kWelcome) {
    fail(rank, "processes disagree on the number of ranks", std::to_string(size),
         std::to_string(answer.size), "Start all processes with the same WORLD_SIZE.");
  }
  star.sockets.push_back(std::move(fd));
  return star;
}

namespace {

void send_text(int fd, const std::string& text, Deadline deadline) {
  const auto length = static_cast<uint32_t>(text.size());
  if (!send_all(fd, &length, sizeof length, deadline) ||
      !send_all(fd, text.data(), static_cast<int64_t>(text.size()), deadline)) {
    fail(0, "a rank left while the ranks met", "", "", "See the other ranks' errors.");
  }
}

std::string receive_text(int fd, Deadline deadline) {
  uint32_t length = 0;
  std::string text;
  bool whole = receive_all(fd, &length, sizeof length, deadline) && length <= kMaxText;
  if (whole) {
    text.resize(length);
    whole = receive_all(fd, text.data(), length, deadline);
  }
  if (!whole) fail(0, "a rank left while the ranks met", "", "", "See the other ranks' errors.");
  return text;
}

}  // namespace

std::vector<std::string> gather_texts(const Star& star, const std::string& own, Deadline deadline) {
  WAM_CHECK(own.size() <= kMaxText) << own.size();
  std::vector<std::string> texts(static_cast<size_t>(star.size));
  if (star.rank == 0) {
    texts[0] = own;
    for (size_t r = 1; r < texts.size(); ++r)
      texts[r] = receive_text(star.sockets[r].get(), deadline);
    for (size_t r = 1; r < texts.size(); ++r) {
      for (const std::string& text : texts) send_text(star.sockets[r].get(), text, deadline);
    }
    return texts;
  }
  send_text(star.sockets[0].get(), own, deadline);
  for (std::string& text : texts) text = receive_text(star.sockets[0].get(), deadline);
  return texts;
}

}  // namespace wam::dist
