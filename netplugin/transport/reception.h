// Who connects to this process, and what becomes of it: greetings are judged here, flows are given to the listeners that they ask for.
#ifndef R2CC_NETPLUGIN_TRANSPORT_RECEPTION_H_
#define R2CC_NETPLUGIN_TRANSPORT_RECEPTION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "netplugin/link/wire.h"
#include "netplugin/transport/comm.h"
#include "netplugin/transport/tcp/io.h"
#include "netplugin/transport/tcp/recv_peer.h"

namespace r2cc::net {

class RecvComm : public Comm {
 public:
  RecvComm(RecvPeer* peer, FlowId flow) : peer_(peer), flow_(flow) {}

 private:
  friend class Engine;
  RecvPeer* const peer_;
  const FlowId flow_;
};

class Reception {
 public:
  // `on_peer`: a node that had no session with this process has one.
  Reception(Io* io, std::function<void(const std::string& node)> on_peer) : io_(io), on_peer_(std::move(on_peer)) {}

  // ---- the I/O thread ----

  // See Greeter::OnHello.
  HelloReply Greet(const Hello& hello, std::unique_ptr<PacketStream>* stream);
  std::map<uint64_t, std::shared_ptr<RecvPeer>>& peers() { return peers_; }

  // ---- any thread ----

  void Open(uint64_t listen_id);
  // A flow that was opened to the listener, or null.
  std::unique_ptr<RecvComm> Accept(uint64_t listen_id);
  // Returns what was opened and nobody accepted.
  std::deque<std::unique_ptr<RecvComm>> Close(uint64_t listen_id);

 private:
  // One line why not; empty: welcome.
  std::string Judge(const Hello& hello) const;
  bool CameInRightly(const Hello& hello, int fd) const;
  RecvPeer* PeerOf(const Hello& hello);
  Comm* FlowOpened(RecvPeer* peer, FlowId flow, uint64_t listen_id);

  Io* const io_;
  const std::function<void(const std::string&)> on_peer_;
  std::map<uint64_t, std::shared_ptr<RecvPeer>> peers_;  // by session

  std::mutex mutex_;
  std::map<uint64_t, std::deque<std::unique_ptr<RecvComm>>> listeners_;  // with the flows that nobody has accepted yet
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_RECEPTION_H_
