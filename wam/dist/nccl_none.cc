#include "wam/base/error.h"
#include "wam/dist/device_groups.h"

namespace wam::dist {

bool has_nccl() { return false; }
std::string nccl_version() { return ""; }

std::shared_ptr<const Groups> make_nccl_groups(const Mesh&, std::shared_ptr<Transport>, Progress*) {
  throw CommError({.where = "nccl",
                   .what = "this binary was built without NCCL",
                   .remedy = "Build with CUDA where nccl.h is found, or train on one GPU."});
}

}  // namespace wam::dist
