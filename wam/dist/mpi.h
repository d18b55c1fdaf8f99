// MPI as a carrier of bytes. Exists in every build: without MPI, has_mpi() is false and join_mpi()
// throws.
#pragma once

#include <memory>
#include <string>

#include "wam/dist/transport.h"

namespace wam::dist {

bool has_mpi();
std::string mpi_version();  // of the library; empty without MPI

// Starts MPI and joins its world. Once per process. The last owner ends MPI, unless an exception is
// under way: peers that wait for messages would make the end wait, too.
std::shared_ptr<Transport> join_mpi();

}  // namespace wam::dist
