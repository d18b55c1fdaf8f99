// The communicators of one rank, one for each axis of the mesh: what an executor hands to the
// kernels of collectives.
#pragma once

#include <memory>

#include "wam/dist/communicator.h"
#include "wam/dist/host_communicator.h"
#include "wam/dist/mesh.h"

namespace wam::dist {

struct Groups {
  Mesh mesh;
  std::shared_ptr<Communicator> world, shard, replica;

  bool can_be_captured() const { return world->can_be_captured(); }
  Communicator& on(Axis axis) const {
    return axis == Axis::kWorld ? *world : (axis == Axis::kShard ? *shard : *replica);
  }
};

// Host collectives of all three axes over one transport.
std::shared_ptr<const Groups> make_host_groups(const Mesh& mesh,
                                               std::shared_ptr<Transport> transport,
                                               const HostCommunicatorOptions& options = {});
// A world of one: collectives copy.
std::shared_ptr<const Groups> make_single_groups();

}  // namespace wam::dist
