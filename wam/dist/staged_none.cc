#include "wam/base/error.h"
#include "wam/dist/device_groups.h"

namespace wam::dist {

std::shared_ptr<const Groups> make_staged_groups(const Mesh&, std::shared_ptr<Transport>,
                                                 const HostCommunicatorOptions&) {
  throw CommError({.where = "device collectives",
                   .what = "this binary was built without CUDA",
                   .remedy = "Build with -DWAM_CUDA=ON."});
}

}  // namespace wam::dist
