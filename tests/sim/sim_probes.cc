#include "tests/sim/sim_probes.h"

#include <utility>

#include "tests/sim/sim_transport.h"

namespace r2cc::sim {

SimProbes::~SimProbes() {
  for (auto& [connection, open] : open_) ready_.Unwatch(open.token, open.socket.get());
}

void SimProbes::Tick(Nanos now) {
  ready_.Run();
  probes_.Tick(now);
  for (const net::Probes::ConnectionAction& action : probes_.TakeActions())
    action.kind == net::Probes::ConnectionAction::Kind::kConnect ? Connect(action.connection, action.peer) : Close(action.connection);
}

void SimProbes::Connect(uint64_t connection, const net::OobAddress& peer) {
  Open& open = open_[connection];
  open.socket = io_->network->Connect({io_->host, kOobRail}, {HostOf(peer.host), kOobRail}, true);
  open.token = ready_.Watch(open.socket, [this, connection] { Look(connection); });
}

void SimProbes::Close(uint64_t connection) {
  const auto it = open_.find(connection);
  ready_.Unwatch(it->second.token, it->second.socket.get());
  it->second.socket->Close();
  open_.erase(it);
}

void SimProbes::Look(uint64_t connection) {
  Open& open = open_.at(connection);
  const Socket& socket = *open.socket;
  if (socket.broken() || socket.ended())
    probes_.Ended(connection,
                  socket.refused()  ? net::ProbeResult::kRefused
                  : socket.broken() ? net::ProbeResult::kSilent
                                    : net::ProbeResult::kRuns,
                  io_->local_now());
  else if (socket.connected() && !std::exchange(open.connected, true))
    probes_.Connected(connection, io_->local_now());
}

}  // namespace r2cc::sim
