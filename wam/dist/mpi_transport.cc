#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/dist/mpi.h"

namespace wam::dist {
namespace {

// MPI counts in int.
constexpr int64_t kMaxPiece = int64_t{1} << 30;
constexpr int kTag = 0x57;

void demand(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw CommError({.where = "mpi",
                   .what = std::string(what) + " failed",
                   .got = std::string(text, static_cast<size_t>(length)),
                   .remedy = "See the other ranks' errors; the newest checkpoint is good."});
}

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int provided = 0;
    demand(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_SERIALIZED) {
      throw CommError({.where = "mpi",
                       .what = "the library does not allow other threads beside MPI",
                       .remedy = "Use an MPI built with thread support."});
    }
    demand(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
  }

  ~MpiTransport() override {
    if (std::uncaught_exceptions() == 0) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in) override {
    requests_.clear();
    expected_.clear();
    for (const Incoming& piece : in) {
      auto* at = static_cast<char*>(piece.data);
      for (int64_t done = 0; done < piece.bytes || done == 0; done += kMaxPiece) {
        const auto length = static_cast<int>(std::min(kMaxPiece, piece.bytes - done));
        demand(MPI_Irecv(at + done, length, MPI_BYTE, piece.peer, kTag, world_,
                         &requests_.emplace_back()),
               "MPI_Irecv");
        expected_.push_back({piece.peer, length});
      }
    }
    const size_t receives = requests_.size();
    for (const Outgoing& piece : out) {
      const auto* at = static_cast<const char*>(piece.data);
      for (int64_t done = 0; done < piece.bytes || done == 0; done += kMaxPiece) {
        const auto length = static_cast<int>(std::min(kMaxPiece, piece.bytes - done));
        demand(MPI_Isend(at + done, length, MPI_BYTE, piece.peer, kTag, world_,
                         &requests_.emplace_back()),
               "MPI_Isend");
      }
    }
    statuses_.resize(requests_.size());
    wait_all();
    for (size_t i = 0; i < receives; ++i) {
      int got = 0;
      MPI_Get_count(&statuses_[i], MPI_BYTE, &got);
      const auto& [peer, length] = expected_[i];
      if (got != length) throw_size_mismatch(rank_, peer, got, length);
    }
  }

 private:
  // Most waits are short; those that are not shall not take a core from who is late.
  void wait_all() {
    using std::chrono::microseconds;
    int done = 0;
    for (int64_t tries = 0; done == 0; ++tries) {
      const int status = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                                     statuses_.data());
      if (status == MPI_ERR_IN_STATUS) {
        for (const MPI_Status& one : statuses_) {
          if (one.MPI_ERROR != MPI_SUCCESS && one.MPI_ERROR != MPI_ERR_PENDING) {
            if (one.MPI_ERROR == MPI_ERR_TRUNCATE)
              throw_size_mismatch(rank_, one.MPI_SOURCE, -1, 0);
            demand(one.MPI_ERROR, "receiving");
          }
        }
      }
      demand(status, "MPI_Testall");
      if (done != 0 || tries < 100) continue;
      if (tries < 2000) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(microseconds(100));
      }
    }
  }

  struct Expected {
    int peer;
    int length;
  };
  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::vector<Expected> expected_;
};

}  // namespace

bool has_mpi() { return true; }

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string whole(text, static_cast<size_t>(length));
  return whole.substr(0, whole.find(','));
}

std::shared_ptr<Transport> join_mpi() { return std::make_shared<MpiTransport>(); }

}  // namespace wam::dist
