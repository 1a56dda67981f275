// The transports of a process: the one of the out-of-band connection, and those that carry the links of its rails. Each rail is opened on
// all that it has; all are started, ticked and ended together.
//
// Threads: the I/O thread's, or before it runs.
#ifndef R2CC_NETPLUGIN_TRANSPORT_RAIL_TRANSPORTS_H_
#define R2CC_NETPLUGIN_TRANSPORT_RAIL_TRANSPORTS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/config/config.h"
#include "netplugin/gpu/gpu.h"
#include "netplugin/transport/links.h"
#include "netplugin/transport/oob.h"

namespace r2cc::net {

// What a process has for a transport beside that of the out-of-band connection. It outlives the transport.
struct TransportParts {
  Poller* poller = nullptr;  // the I/O thread's
  const Clock* clock = nullptr;
  LogFn log;                // any thread
  gpu::Gpu* gpu = nullptr;  // null: there is none
  // The keys of the rail's regions are void, and its device takes memory: it is registered anew. Any thread, without a lock of a peer.
  std::function<void(TransportKind kind, uint16_t rail)> keys_revoked;
  // I/O thread: the rail is found elsewhere now: Listen() says where, and does not block.
  std::function<void(TransportKind kind, uint16_t rail)> rail_changed;
};
// Null and one line in `error`: the machine has nothing of it.
using MakeTransport = std::function<std::unique_ptr<Transport>(const TransportParts& parts, std::string* error)>;

class RailTransports {
 public:
  // With kVerbs rails have verbs or are refused; else the out-of-band transport carries links, too.
  explicit RailTransports(TransportOption option) : option_(option) {}
  // Not with kTcp. False and one line in `error`: with kVerbs it has to be there. With kAuto rails do without it; who knows the machine
  // has told why.
  bool Make(const MakeTransport& make, const TransportParts& parts, std::string* error);
  void SetOob(std::unique_ptr<OobTransport> oob) { oob_ = std::move(oob); }

  OobTransport* oob() const { return oob_.get(); }
  // All, for peers' ports.
  std::vector<Transport*> all() const;
  // Those that may carry links.
  std::vector<Transport*> on_rails() const;

  // Some of them place by the sender's device: what it reads and writes must be registered.
  bool place_by_device() const { return !others_.empty(); }

  // Opens the rail on all that it has: its endpoints. False and one line in `error`; `endpoints` is as before then.
  bool Listen(const Rail& rail, const LogFn& log, std::vector<RailEndpoint>* endpoints, std::string* error);
  // Again, on those that it was opened on: `endpoints`. A transport that cannot be had now keeps its place, as peers keep to the transport
  // that joined two rails: without an address if the rail's own is another now. True: some endpoint is another than before.
  bool ListenAgain(const Rail& rail, const LogFn& log, std::vector<RailEndpoint>* endpoints);
  // On one of those, where it was found elsewhere. Without an address for now it stays where it was, the best guess.
  bool ListenAgain(TransportKind kind, const Rail& rail, const LogFn& log, std::vector<RailEndpoint>* endpoints);
  // The rail, and the device behind it if it has one: "eth0 (RDMA, mlx5_0)".
  std::string NameOf(const Rail& rail) const;
  // One line that says by what each rail goes.
  std::string Describe(const std::vector<Rail>& rails) const;

  // See Transport::UseTrafficClass(). Any thread.
  void UseTrafficClass(int named, const LogFn& log) const;

  void StartThreads(int processors);
  void Tick(Nanos now);
  void StopListening();
  void StopThreads();
  uint64_t refused() const;

 private:
  // Null: there is none of that kind.
  Transport* OnRails(TransportKind kind) const;

  const TransportOption option_;
  std::unique_ptr<OobTransport> oob_;
  std::vector<std::unique_ptr<Transport>> others_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_RAIL_TRANSPORTS_H_
