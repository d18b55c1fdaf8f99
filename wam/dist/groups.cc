#include "wam/dist/groups.h"

#include "wam/base/check.h"
#include "wam/dist/loopback.h"

namespace wam::dist {

std::shared_ptr<const Groups> make_host_groups(const Mesh& mesh,
                                               std::shared_ptr<Transport> transport,
                                               const HostCommunicatorOptions& options) {
  WAM_CHECK(mesh.rank == transport->rank() && mesh.world() == transport->size())
      << mesh.rank << " of " << mesh.world();
  const auto make = [&](Axis axis) {
    return std::make_shared<HostCommunicator>(transport, mesh.members(axis), options);
  };
  return std::make_shared<Groups>(
      Groups{mesh, make(Axis::kWorld), make(Axis::kShard), make(Axis::kReplica)});
}

std::shared_ptr<const Groups> make_single_groups() {
  return make_host_groups(make_mesh(1, 0, 1), Loopback(1).end(0));
}

}  // namespace wam::dist
