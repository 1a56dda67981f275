// What a simulated process hears of its rails: from its kernel, and from the daemon of its node.
#include <utility>

#include "tests/sim/process.h"

namespace r2cc::sim {

// The counterpart of Engine's.
void Process::StartControlPlane() {
  poller_ = std::make_unique<net::Poller>();
  auto events = std::make_unique<SimLinkEvents>();
  link_events_ = events.get();
  control_plane_ =
      std::make_unique<net::ControlPlane>(&host_, poller_.get(), std::vector<net::FailRail>(), std::move(events), std::move(daemon_));
  host_.page = [this] { return control_plane_->page(); };
  host_.report = [this](const plan::EvidenceRecord& record) { control_plane_->Report(record); };
  control_plane_->Start({
      .exclusively = [this](const std::function<void()>& call) { Exclusively(call); },
      .rail_state = [this](uint16_t rail, bool up) { ForEachPeer([&](net::Peer* peer) { peer->RailState(rail, up); }); },
      .verdicts = [this] { ForEachPeer([](net::Peer* peer) { peer->ApplyVerdicts(); }); },
      .attached =
          [this] {
            for (const auto& [host, peer] : send_peers_)
              if (!peer->node().empty()) control_plane_->ReportPeer(peer->node());
            for (const auto& [session, peer] : acceptor_->peers()) control_plane_->ReportPeer(peer->node());
          },
      .renamed = [this] { ForEachPeer([](net::Peer* peer) { peer->Regreet(); }); },
      .address = [](uint16_t, const net::IpAddress&) {},
  });
  Wake();
}

void Process::Exclusively(const std::function<void()>& call) const {
  std::vector<std::unique_ptr<net::PeerLock>> locks;
  ForEachPeer([&](net::Peer* peer) { locks.push_back(std::make_unique<net::PeerLock>(*peer)); });
  call();
  ForEachPeer([](net::Peer* peer) { peer->RunToCompletion(); });
}

void Process::RailState(int rail, bool up) {
  if (dead_) return;
  if (link_events_ != nullptr) {
    link_events_->Set(rail, up);
    return Wake();
  }
  calls_.push_back([this, rail, up] {
    net::LocalRail& local = host_.rails[static_cast<size_t>(rail)];
    if (std::exchange(local.up, up) == up) return;
    ForEachPeer([&](net::Peer* peer) {
      const net::PeerLock lock(*peer);
      peer->RailState(static_cast<uint16_t>(rail), up);
      peer->RunToCompletion();
    });
  });
  Wake();
}

void Process::ApplyVerdicts() {
  if (dead_) return;
  calls_.push_back([this] {
    ForEachPeer([](net::Peer* peer) {
      const net::PeerLock lock(*peer);
      peer->ApplyVerdicts();
      peer->RunToCompletion();
    });
  });
  Wake();
}

}  // namespace r2cc::sim
