// Decides which peers the I/O thread drives, and when. NCCL's threads move bytes themselves when they call, so the I/O thread is woken only
// for peers that none of them drives. I/O thread only.
#ifndef R2CC_NETPLUGIN_TRANSPORT_PEER_WATCH_H_
#define R2CC_NETPLUGIN_TRANSPORT_PEER_WATCH_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/peer.h"

namespace r2cc::net {

class PeerWatch {
 public:
  explicit PeerWatch(Poller* poller) : poller_(poller) {}

  void Add(Peer* peer);
  void Remove(Peer* peer);
  // A request waits for the peer.
  void Expect(Peer* peer) { watched_.at(peer).active = true; }

  // Decides which peers to wait for. Returns for how long to wait for the poller, in milliseconds.
  int WaitMs();
  // After the wait: drives what was left over.
  void ServiceMore();
  // Ticks peers that no NCCL thread drives, and polls for workers. Returns the peers that are over.
  std::vector<Peer*> Tick();

 private:
  struct Watched {
    std::vector<std::pair<Poller::Token, int>> armed;  // the descriptors of its ports that wake the I/O thread; empty: none does
    uint64_t progress = 0;                             // Peer::progress_calls() at the last look
    bool active = true;                                // something waited for it at its last tick
    uint64_t ticked = 0;                               // Peer::progress_calls() at the last tick
  };
  void Arm(Peer* peer, Watched* watched);
  void Disarm(Watched* watched);

  Poller* const poller_;
  std::map<Peer*, Watched> watched_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_PEER_WATCH_H_
