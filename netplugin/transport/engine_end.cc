// How a process's data plane ends.
#include "netplugin/flow/tuning.h"
#include "netplugin/transport/engine.h"

namespace r2cc::net {
void Engine::Stop() {
  if (!thread_.joinable()) return;
  stop_ = true;
  Wake();
  thread_.join();
}

// A job that ends must not leave its peers waiting for an acknowledgement that never left, nor for small messages that NCCL believes to
// be sent: while a peer may still be reached, the end waits for its answer.
void Engine::Drain() {
  calls_.Run();
  control_plane_->ReportTotals(clock_.Now());
  ForEachPeer([](Peer* peer) {
    const PeerLock lock(*peer);
    peer->CloseFlows();
  });
  for (Nanos began = clock_.Now(), now = began;; now = clock_.Now()) {
    bool waiting = false;
    ForEachPeer([&](Peer* peer) {
      peer->Tick();
      const PeerLock lock(*peer);
      waiting |= !peer->drained();
    });
    if (!waiting || now - began >= host_.deadline) break;
    control_plane_->Poll(now);
    transports_.Tick(now);
    poller_.Wait(static_cast<int>(tuning::kTickEvery / kNanosPerMs));
    calls_.Run();
    closer_.Look(now);
  }
  control_plane_->ReportEnding();
  ForEachPeer([](Peer* peer) {
    const PeerLock lock(*peer);
    peer->HalfClose();
  });
}

}  // namespace r2cc::net
