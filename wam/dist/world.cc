#include "wam/dist/world.h"

#include <cstring>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/dist/loopback.h"
#include "wam/dist/mpi.h"
#include "wam/dist/tcp_transport.h"

namespace wam::dist {
namespace {

std::vector<int> all_ranks(int size) { return make_mesh(size, 0, 1).members(Axis::kWorld); }

Star meet_by_address(const Launch& launch, Deadline deadline) {
  if (launch.rank == 0) return meet_as_first(launch.size, listen_on(launch.port), deadline);
  return meet(launch.rank, launch.size, {{launch.host, launch.port}}, deadline);
}

// MPI knows no addresses: rank 0 tells all of its own. Ranks on its machine find the loop-back one.
Star meet_by_mpi(Transport& transport, Deadline deadline) {
  char text[1024] = {};
  Listener listener;
  if (transport.rank() == 0) {
    listener = listen_on(0);
    const std::string list = std::to_string(listener.port) + " " + join(own_addresses(), " ");
    std::strncpy(text, list.c_str(), sizeof text - 1);
  }
  HostCommunicator(std::shared_ptr<Transport>(&transport, [](Transport*) {}),
                   all_ranks(transport.size()))
      .broadcast(text, sizeof text, 0, nullptr);
  if (transport.rank() == 0) return meet_as_first(transport.size(), std::move(listener), deadline);
  const std::vector<std::string> words = split(text, ' ');
  std::vector<Endpoint> endpoints;
  for (size_t i = 1; i < words.size(); ++i) endpoints.push_back({words[i], std::stoi(words[0])});
  return meet(transport.rank(), transport.size(), endpoints, deadline);
}

}  // namespace

World::World(const Launch& launch, std::shared_ptr<Transport> transport)
    : launch_(launch), transport_(std::move(transport)) {
  host_ = std::make_unique<HostCommunicator>(transport_, all_ranks(transport_->size()),
                                             HostCommunicatorOptions{.progress = &progress_});
}

World::~World() = default;

std::shared_ptr<World> World::join(const Launch& launch, const WorldOptions& options) {
  const Deadline deadline = after_seconds(options.meet_seconds);
  if (launch.carrier == Launch::Carrier::kNone) {
    return std::shared_ptr<World>(new World(launch, Loopback(1).end(0)));
  }
  const bool by_mpi = launch.carrier == Launch::Carrier::kMpi;
  std::shared_ptr<Transport> transport = by_mpi ? join_mpi() : nullptr;
  if (by_mpi && transport->size() == 1) return std::shared_ptr<World>(new World(launch, transport));
  Star star = by_mpi ? meet_by_mpi(*transport, deadline) : meet_by_address(launch, deadline);
  if (!by_mpi) transport = make_tcp_transport(star, deadline);
  std::shared_ptr<World> world(new World(launch, transport));
  world->watchdog_ =
      std::make_unique<Watchdog>(std::move(star), world->progress_, options.watchdog);
  return world;
}

std::vector<std::string> World::gather(const std::string& text) {
  const auto length = static_cast<int64_t>(text.size());
  std::vector<int64_t> lengths(static_cast<size_t>(size()));
  host_->all_gather(&length, lengths.data(), sizeof length, nullptr);
  std::vector<std::string> texts;
  for (int r = 0; r < size(); ++r) {
    std::string& one = texts.emplace_back(r == rank() ? text : std::string());
    one.resize(static_cast<size_t>(lengths[static_cast<size_t>(r)]));
    host_->broadcast(one.data(), std::ssize(one), r, nullptr);
  }
  return texts;
}

std::vector<double> World::gather(std::span<const double> values) {
  std::vector<double> all(values.size() * static_cast<size_t>(size()));
  host_->all_gather(values.data(), all.data(), static_cast<int64_t>(values.size_bytes()), nullptr);
  return all;
}

void World::barrier() { host_->barrier(); }

void World::leave() {
  host_->barrier();
  if (watchdog_) watchdog_->leave();
}

void World::report(const std::exception& error) {
  if (!watchdog_) return;
  if (dynamic_cast<const CommError*>(&error) != nullptr) watchdog_->await_verdict();
  watchdog_->report(error.what());
}

}  // namespace wam::dist
