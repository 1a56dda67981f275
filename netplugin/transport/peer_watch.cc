#include "netplugin/transport/peer_watch.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
void PeerWatch::Add(Peer* peer) {
  if (!watched_.contains(peer)) Arm(peer, &watched_[peer]);
}

void PeerWatch::Remove(Peer* peer) {
  Disarm(&watched_.at(peer));
  watched_.erase(peer);
}

void PeerWatch::Arm(Peer* peer, Watched* watched) {
  if (!watched->armed.empty()) return;
  for (const auto& port : peer->ports()) {
    if (port->fd() < 0) continue;
    const Poller::Token token = poller_->Add(port->fd(), EPOLLIN, [this, peer, watched](uint32_t) {
      watched->active = true;
      // Somebody has the lock, or comes for it all the time: he needs no help, and waking up for his messages costs him. The first thing
      // that comes after a pause wakes us later than he finds it: to serve it then would keep him from the next.
      const auto driven = [&] { return peer->progress_calls() != watched->progress; };
      if (driven() || !peer->Service() || driven()) Disarm(watched);
    });
    watched->armed.emplace_back(token, port->fd());
  }
}

void PeerWatch::Disarm(Watched* watched) {
  for (const auto& [token, fd] : std::exchange(watched->armed, {})) poller_->Remove(token, fd);
}

int PeerWatch::WaitMs() {
  auto wait_ms = static_cast<int>(tuning::kIdleWait / kNanosPerMs);
  for (auto& [peer, watched] : watched_) {
    const bool driven = std::exchange(watched.progress, peer->progress_calls()) != watched.progress;
    if (!driven) Arm(peer, &watched);
    if (!watched.armed.empty() && peer->more()) wait_ms = 0;
    if (driven)
      wait_ms = std::min(wait_ms, static_cast<int>(tuning::kEngineLookEvery / kNanosPerMs));
    else if (watched.active)
      wait_ms = std::min(wait_ms, static_cast<int>(tuning::kTickEvery / kNanosPerMs));
  }
  return wait_ms;
}

void PeerWatch::ServiceMore() {
  for (const auto& [peer, watched] : watched_)
    if (!watched.armed.empty() && peer->more()) peer->Service();
}

std::vector<Peer*> PeerWatch::Tick() {
  std::vector<Peer*> over;
  for (auto& [peer, watched] : watched_) {
    // Who comes all the time does it himself; moving bytes here as well would only take his processor from him.
    if (std::exchange(watched.ticked, peer->progress_calls()) != peer->progress_calls()) {
      watched.active = true;
      continue;
    }
    peer->Tick();
    const PeerLock lock(*peer);
    watched.active = peer->outstanding();
    if (peer->over()) over.push_back(peer);
  }
  return over;
}

}  // namespace r2cc::net
