// Defines the out-of-band connection of a peer, and the probe of its address. Neither is a link: they carry no chunks, and always use TCP.
// Threads and order as in links.h.
#ifndef R2CC_NETPLUGIN_TRANSPORT_OOB_H_
#define R2CC_NETPLUGIN_TRANSPORT_OOB_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/core/clock.h"
#include "netplugin/config/log.h"
#include "netplugin/link/action.h"
#include "netplugin/link/frame.h"
#include "netplugin/transport/links.h"
#include "netplugin/transport/os/poller.h"

namespace r2cc::net {

// The address at which a process accepts out-of-band connections.
struct OobAddress {
  std::string host;  // a numeric address
  uint16_t port = 0;
  auto operator<=>(const OobAddress&) const = default;
};

class OobOwner {
 public:
  virtual ~OobOwner() = default;
  // The peer has answered our greeting; frames may go once this returns. Not accepted: Close() it.
  virtual void OobGreeted(const HelloReply& reply) = 0;
  virtual void OobFrameReceived(const Frame& frame) = 0;
  // The peer's kernel has accepted the connection, and its process has not answered our greeting yet. It stays as long as the kernel
  // answers its keep-alives: OobGreeted() or OobLost() follows, perhaps never.
  virtual void OobUngreeted() = 0;
  // It could not be made, or broke, and is closed.
  virtual void OobLost(ProbeResult result) = 0;
  // The answer to Probe().
  virtual void Probed(ProbeResult result) = 0;
};

class Oob {
 public:
  virtual ~Oob() = default;
  // For the initiator: connects and greets. OobGreeted() or OobLost() follows, perhaps within the call.
  virtual void Open(const Hello& hello) = 0;
  // For the acceptor: a connection that greeted us; it is answered with `reply` before any frame. Closes what was open.
  virtual void Attach(std::unique_ptr<Connection> greeted, const HelloReply& reply) = 0;
  virtual void Close() = 0;
  // Lives as long as this.
  virtual ControlChannel* control() = 0;

  // Checks whether any process listens at the peer's address. `last_received`: when the caller last heard from the peer's process. Probed()
  // follows, from Tick(): see Probes.
  virtual void Probe(Nanos last_received) = 0;
  // Call at least every 10 ms: gives up an attempt without an answer, and reports what is known by now.
  virtual void Tick() = 0;
};

class OobPort : public Port {
 public:
  virtual std::unique_ptr<Oob> NewOob(const OobAddress& peer, OobOwner* owner) = 0;
};

// A transport that also carries the out-of-band connections.
class OobTransport : public Transport {
 public:
  // Opens the process's address. On failure one line in `error`.
  virtual bool ListenOob(const std::string& host, uint16_t* port, std::string* error) = 0;
  // False: it is no address, or none that this process could reach from its own.
  virtual bool Reaches(const OobAddress& peer) const = 0;
  // For log lines: the ports that must be open between nodes, and what recently kept this process from making connections. Any thread.
  virtual std::string Needs() const { return ""; }
  virtual std::string Trouble() const { return ""; }
  virtual std::unique_ptr<OobPort> NewOobPort(const SessionKey& key, const PeerState* state) = 0;
  std::unique_ptr<Port> NewPort(const SessionKey& key, const PeerState* state) final { return NewOobPort(key, state); }
};

// Uses the I/O thread's poller, the process's clock and log, and a judge of greetings. On failure null and one line in `error`.
using MakeOobTransport = std::function<std::unique_ptr<OobTransport>(Poller*, const Clock*, LogFn, Greet, std::string* error)>;

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_OOB_H_
