#include "netplugin/transport/peer_watch.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

namespace r2cc::net {
namespace {

constexpr int kActiveWaitMs = 5;
// While NCCL's threads do the work: only to see that they still do.
constexpr int kDrivenWaitMs = 10;
constexpr int kIdleWaitMs = 100;

}  // namespace

void PeerWatch::Add(Peer* peer) {
  if (!watched_.contains(peer)) Arm(peer, &watched_[peer]);
}

void PeerWatch::Remove(Peer* peer) {
  Disarm(peer, &watched_.at(peer));
  watched_.erase(peer);
}

void PeerWatch::Arm(Peer* peer, Watched* watched) {
  if (watched->token != 0) return;
  watched->token = poller_->Add(peer->fd(), EPOLLIN, [this, peer, watched](uint32_t) {
    watched->active = true;
    // Somebody has the turn, or comes for it all the time: he needs no help, and waking up for his messages costs him. The first thing that
    // comes after a pause wakes us later than he finds it: to serve it then would keep him from the next.
    const auto driven = [&] { return peer->helped() != watched->helped; };
    if (driven() || !peer->Service() || driven()) Disarm(peer, watched);
  });
}

void PeerWatch::Disarm(Peer* peer, Watched* watched) {
  if (watched->token != 0) poller_->Remove(std::exchange(watched->token, 0), peer->fd());
}

int PeerWatch::WaitMs() {
  int wait_ms = kIdleWaitMs;
  for (auto& [peer, watched] : watched_) {
    const bool helped = std::exchange(watched.helped, peer->helped()) != watched.helped;
    if (!helped) Arm(peer, &watched);
    if (watched.token != 0 && peer->more()) wait_ms = 0;
    if (helped)
      wait_ms = std::min(wait_ms, kDrivenWaitMs);
    else if (watched.active || peer->crewed())
      wait_ms = std::min(wait_ms, kActiveWaitMs);
  }
  return wait_ms;
}

void PeerWatch::ServiceMore() {
  for (const auto& [peer, watched] : watched_)
    if (watched.token != 0 && peer->more()) peer->Service();
}

std::vector<Peer*> PeerWatch::Tick() {
  std::vector<Peer*> over;
  for (auto& [peer, watched] : watched_) {
    if (peer->crewed()) {
      const auto turn = peer->TakeTurn();
      peer->UpdateCrew();
    }
    // Who comes all the time does it himself; moving bytes here as well would only take his processor from him.
    if (std::exchange(watched.ticked, peer->helped()) != peer->helped()) {
      watched.active = true;
      continue;
    }
    peer->TickTurn();
    const auto turn = peer->TakeTurn();
    watched.active = peer->outstanding();
    if (peer->over()) over.push_back(peer);
  }
  return over;
}

}  // namespace r2cc::net
