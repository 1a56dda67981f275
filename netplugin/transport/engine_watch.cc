// What a process's data plane tells the daemon of requests that make no progress.
#include "netplugin/transport/engine.h"
#include "netplugin/transport/record.h"

namespace r2cc::net {

void Engine::WatchRequests(Nanos now) {
  if (!progress_.due(now)) return;
  const auto each = [this](auto look) {
    for (const auto& [process, peer] : send_peers_) look(*peer);
    for (const auto& [session, peer] : acceptor_->peers()) look(*peer);
  };
  ProgressWatch::Facts facts;
  each([&](auto& peer) {
    const PeerLock lock(peer);
    const JobRequests requests = peer.Requests();
    facts.outstanding += requests.outstanding;
    facts.done += requests.done;
  });
  for (const LocalRail& rail : host_.rails) facts.moved_bytes += rail.sent_bytes.value() + rail.received_bytes.value();
  const ProgressWatch::Verdict verdict = progress_.Look(facts, now);
  if (!verdict.report) return;
  JobWait clearest;
  LinkEnds ends;
  each([&](auto& peer) {
    const PeerLock lock(peer);
    if (verdict.waited == 0 || peer.Requests().outstanding == 0) return;
    LinkEnds of;
    const JobWait wait = peer.WaitsFor(&of);
    if (clearest.what != plan::WaitFor::kUnknown && wait.what >= clearest.what) return;
    clearest = wait;
    ends = of;
  });
  control_plane_->Report(WaitRecord(now, verdict.waited == 0 ? 0 : facts.outstanding, verdict.waited, clearest, ends));
}

}  // namespace r2cc::net
