// Which peers the I/O thread looks after, and when. NCCL's threads move bytes themselves when they call, so the I/O thread is woken for
// what none of them drives. The I/O thread's alone.
#ifndef R2CC_NETPLUGIN_TRANSPORT_PEER_WATCH_H_
#define R2CC_NETPLUGIN_TRANSPORT_PEER_WATCH_H_

#include <cstdint>
#include <map>
#include <vector>

#include "netplugin/transport/tcp/peer.h"

namespace r2cc::net {

class PeerWatch {
 public:
  explicit PeerWatch(Poller* poller) : poller_(poller) {}

  void Add(Peer* peer);
  void Remove(Peer* peer);
  // Something waits for it.
  void Expect(Peer* peer) { watched_.at(peer).active = true; }

  // Settles who is waited for; how long to wait for the poller, in milliseconds.
  int WaitMs();
  // After the wait: what was left over in the turns before.
  void ServiceMore();
  // Lets time pass for peers that nobody drives, and looks after crews. Returns those that are over.
  std::vector<Peer*> Tick();

 private:
  struct Watched {
    Poller::Token token = 0;  // the I/O thread is woken by what arrives; 0: it is not
    uint64_t helped = 0;      // Peer::helped() at the last look
    bool active = true;       // something waited for it at its last tick
    uint64_t ticked = 0;      // Peer::helped() at the last tick
  };
  void Arm(Peer* peer, Watched* watched);
  void Disarm(Peer* peer, Watched* watched);

  Poller* const poller_;
  std::map<Peer*, Watched> watched_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_PEER_WATCH_H_
