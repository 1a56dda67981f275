// What a process's data plane does when the control plane reports a change. It is called with the locks of all peers.
#include "netplugin/transport/engine.h"

namespace r2cc::net {

void Engine::StartControlPlane() {
  control_plane_->Start({
      .exclusively = [this](const std::function<void()>& call) { Exclusively(call); },
      .rail_state =
          [this](uint16_t rail, bool up) {
            NoteRail(rail, up);
            ForEachPeer([&](Peer* peer) {
              peer->HasLock();
              peer->RailState(rail, up);
            });
          },
      .verdicts =
          [this] {
            ForEachPeer([](Peer* peer) {
              peer->HasLock();
              peer->ApplyVerdicts();
            });
          },
      .attached =
          [this] {
            for (const auto& [process, peer] : send_peers_) {
              peer->HasLock();
              if (!peer->node().empty()) control_plane_->ReportPeer(peer->node());
            }
            for (const auto& [session, peer] : acceptor_->peers()) {
              peer->HasLock();
              control_plane_->ReportPeer(peer->node());
            }
          },
      .renamed =
          [this] {
            ForEachPeer([](Peer* peer) {
              peer->HasLock();
              peer->Regreet();
            });
          },
      .address =
          [this](uint16_t rail, const IpAddress& address) {
            IpAddress& known = parts_.rails[rail].address;
            if (known == address) return;
            known = address;
            transports_.ListenAgain(parts_.rails[rail], host_.log, &host_.rails[rail].endpoints);
            for (const auto& [session, peer] : acceptor_->peers()) {
              peer->HasLock();
              peer->Regreet();
            }
          },
  });
}

}  // namespace r2cc::net
