// Bytes between ranks over one TCP connection per pair.
#pragma once

#include <memory>

#include "wam/dist/rendezvous.h"
#include "wam/dist/transport.h"

namespace wam::dist {

// Connects every pair of ranks, with the star's help; all ranks call it together.
std::shared_ptr<Transport> make_tcp_transport(const Star& star, Deadline deadline);

}  // namespace wam::dist
