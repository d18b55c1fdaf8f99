#include "wam/base/error.h"
#include "wam/dist/mpi.h"

namespace wam::dist {

bool has_mpi() { return false; }
std::string mpi_version() { return ""; }

std::shared_ptr<Transport> join_mpi() {
  throw CommError({.where = "mpi",
                   .what = "this binary was built without MPI",
                   .remedy = "Build with -DWAM_MPI=ON, or set MASTER_ADDR and MASTER_PORT."});
}

}  // namespace wam::dist
