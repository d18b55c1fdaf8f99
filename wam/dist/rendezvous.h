// How processes find each other without MPI: all connect to rank 0 at an agreed address. The
// connections stay open afterwards: the watchdog speaks over them.
#pragma once

#include <string>
#include <vector>

#include "wam/dist/socket.h"

namespace wam::dist {

// Connections to rank 0: on rank 0 one for each other rank (its own place is empty), on the others
// one, at place 0.
struct Star {
  int rank = 0, size = 1;
  std::vector<FileDescriptor> sockets;
  std::vector<std::string> addresses;  // rank 0: of each rank as seen from there
};

// Rank 0 serves at `listener`. Connections that do not speak the protocol are closed and do not
// matter. CommError if two processes claim one rank or sizes differ (every process learns it), or
// if somebody is missing at the deadline (rank 0 names who).
Star meet_as_first(int size, Listener listener, Deadline deadline);
Star meet(int rank, int size, const std::vector<Endpoint>& first, Deadline deadline);

// Small values of all ranks, over the star; for setting up. Every rank's text is at most 64 KiB.
std::vector<std::string> gather_texts(const Star& star, const std::string& own, Deadline deadline);

}  // namespace wam::dist
