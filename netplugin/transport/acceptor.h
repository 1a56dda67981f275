// Judges the greetings of connections to this process, and gives opened flows to the listeners that they name.
#ifndef R2CC_NETPLUGIN_TRANSPORT_ACCEPTOR_H_
#define R2CC_NETPLUGIN_TRANSPORT_ACCEPTOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/core/mutex.h"
#include "netplugin/link/frame.h"
#include "netplugin/transport/comm.h"
#include "netplugin/transport/host.h"
#include "netplugin/transport/recv_peer.h"

namespace r2cc::net {

class RecvComm : public Comm {
 public:
  RecvComm(RecvPeer* peer, FlowId flow) : peer_(peer), flow_(flow) {}
  RecvPeer* peer() const { return peer_; }
  FlowId flow() const { return flow_; }

 private:
  RecvPeer* const peer_;
  const FlowId flow_;
};

class Acceptor {
 public:
  // `on_peer`: called when a node has its first session with this process.
  Acceptor(Host* host, std::function<void(const std::string& node)> on_peer) : host_(host), on_peer_(std::move(on_peer)) {}

  // ---- the I/O thread ----

  // A greeting came over `connection`. If the reply accepts, the connection was taken and has its answer, or will have it. Otherwise it is
  // still the caller's, to send the answer and hang up.
  HelloReply Greet(const Hello& hello, std::unique_ptr<Connection>* connection);
  std::map<uint64_t, std::shared_ptr<RecvPeer>>& peers() { return peers_; }
  // This process's data to the peer's process stalls on these rails. Takes the locks of that peer's sessions, one at a time.
  void RailsStalled(uint64_t process, RailPair rails);

  // ---- any thread ----

  void Open(uint64_t listen_id);
  // A flow that was opened to the listener, or null.
  std::unique_ptr<RecvComm> Accept(uint64_t listen_id);
  // Returns the flows that were opened and not accepted.
  std::deque<std::unique_ptr<RecvComm>> Close(uint64_t listen_id);

 private:
  // Why the greeting is refused, in one line; empty: accepted.
  std::string Judge(const Hello& hello) const;
  RecvPeer* PeerOf(const Hello& hello);
  Comm* FlowOpened(RecvPeer* peer, FlowId flow, uint64_t listen_id);

  Host* const host_;
  const std::function<void(const std::string&)> on_peer_;
  std::map<uint64_t, std::shared_ptr<RecvPeer>> peers_;  // by session

  Mutex mutex_;
  // With the flows that are not accepted yet.
  std::map<uint64_t, std::deque<std::unique_ptr<RecvComm>>> listeners_ R2CC_GUARDED_BY(mutex_);
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_ACCEPTOR_H_
