// Communicators whose memory is a GPU's. Declared in every build; where CUDA or NCCL is left out,
// they throw and say so.
#pragma once

#include <memory>
#include <string>

#include "wam/dist/groups.h"

namespace wam::dist {

bool has_nccl();
std::string nccl_version();  // "2.27.3"; empty without NCCL

// Collectives of the GPU that is current, enqueued on the stream they are given; they may be
// captured. All ranks call it together; `transport` carries the identifiers. With one NCCL version
// and one topology the same bits every time; the order of a sum is NCCL's, not that of the ranks.
std::shared_ptr<const Groups> make_nccl_groups(const Mesh& mesh,
                                               std::shared_ptr<Transport> transport,
                                               Progress* progress = nullptr);

// The collectives of host_communicator.h on copies in host memory: any transport, also several
// ranks on one GPU, and the bits of the CPU. They wait for the stream and cannot be captured.
std::shared_ptr<const Groups> make_staged_groups(const Mesh& mesh,
                                                 std::shared_ptr<Transport> transport,
                                                 const HostCommunicatorOptions& options = {});

}  // namespace wam::dist
