// Holds the transports of a process: that of the out-of-band connection, and those that carry the links of its rails. Opens each rail on
// all its transports; starts, ticks and ends all together.
//
// Threads: the I/O thread, or any thread before it runs.
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

// What a process gives to a transport other than the out-of-band one. It outlives the transport.
struct TransportParts {
  Poller* poller = nullptr;  // the I/O thread's
  const Clock* clock = nullptr;
  LogFn log;                // any thread
  gpu::Gpu* gpu = nullptr;  // null: there is none
  // The keys of the rail's regions are void, and its device accepts memory: it is registered again. Any thread, without a lock of a peer.
  std::function<void(TransportKind kind, uint16_t rail)> keys_revoked;
  // I/O thread: the rail's endpoint has changed. Listen() returns the new one, and does not block.
  std::function<void(TransportKind kind, uint16_t rail)> rail_changed;
};
// Null and one line in `error`: the machine has no such device.
using MakeTransport = std::function<std::unique_ptr<Transport>(const TransportParts& parts, std::string* error)>;

class RailTransports {
 public:
  // With kVerbs, rails have verbs or are refused. Otherwise the out-of-band transport also carries links.
  explicit RailTransports(TransportOption option) : option_(option) {}
  // Not called with kTcp. False and one line in `error`: with kVerbs the transport must be there. With kAuto rails do without it, and
  // `make` has logged why.
  bool Make(const MakeTransport& make, const TransportParts& parts, std::string* error);
  void SetOob(std::unique_ptr<OobTransport> oob) { oob_ = std::move(oob); }

  OobTransport* oob() const { return oob_.get(); }
  // All transports, for peers' ports.
  std::vector<Transport*> all() const;
  // The transports that may carry links.
  std::vector<Transport*> on_rails() const;

  // Some transport places by the sender's device: memory that it reads and writes must be registered.
  bool place_by_device() const { return !others_.empty(); }

  // Opens the rail on all its transports: `endpoints`. False and one line in `error`; then `endpoints` is unchanged.
  bool Listen(const Rail& rail, const LogFn& log, std::vector<RailEndpoint>* endpoints, std::string* error);
  // Opens the rail again, on the transports that it was opened on: `endpoints`. A transport that is unavailable now keeps its place,
  // because peers keep the transport that joined two rails; its address is empty if the rail's own has changed. True: some endpoint has
  // changed.
  bool ListenAgain(const Rail& rail, const LogFn& log, std::vector<RailEndpoint>* endpoints);
  // The same for one transport whose endpoint has changed. If it has no address now, the old one stays, as the best guess.
  bool ListenAgain(TransportKind kind, const Rail& rail, const LogFn& log, std::vector<RailEndpoint>* endpoints);
  // The rail's name, with that of its device if it has one: "eth0 (RDMA, mlx5_0)".
  std::string NameOf(const Rail& rail) const;
  // One line that names the transport of each rail.
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
