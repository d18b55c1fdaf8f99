// Ranks as threads of one process. For tests, and for running the programs of several ranks on one
// device.
#pragma once

#include <memory>
#include <vector>

#include "wam/dist/transport.h"

namespace wam::dist {

// One end per rank; each is used by one thread. A rank that ends early must call abandon(), or
// those that wait for it wait forever.
class Loopback {
 public:
  explicit Loopback(int size);
  ~Loopback();
  std::shared_ptr<Transport> end(int rank) const;
  // All waiting and later exchanges throw CommError naming `rank`.
  void abandon(int rank);

 private:
  struct Hub;
  std::shared_ptr<Hub> hub_;
};

}  // namespace wam::dist
