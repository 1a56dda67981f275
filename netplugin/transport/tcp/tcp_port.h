// Connects one peer to TCP: a poller, and the links that have sockets in it. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_PORT_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_PORT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/config/log.h"
#include "netplugin/transport/oob.h"
#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/os/workers.h"
#include "netplugin/transport/tcp/descriptors.h"
#include "netplugin/transport/tcp/socket.h"
#include "netplugin/transport/tcp/tcp_probes.h"

namespace r2cc::net {

class TcpRecvLink;
class TcpSendLink;

// Shared by all ports of the process. Changes only while the I/O thread holds the locks of all peers, except `untied`.
struct TcpShared {
  const Clock* clock = nullptr;
  Source oob_source;
  std::vector<Source> rails;        // the source of each rail's connections; an empty address: it has none
  std::vector<Source> loose;        // the same without interfaces
  std::atomic<bool> untied{false};  // data to a rail's address comes in by other interfaces: connections use `loose`
  LogFn log;
  uint8_t streams_per_rail = 1;  // of bulk
  bool checksum = false;
  Workers* workers = nullptr;  // null: the holder of a peer's lock moves everything
  TcpProbes* probes = nullptr;
  DescriptorWatch* descriptors = nullptr;
};

class TcpPort final : public OobPort {
 public:
  TcpPort(TcpShared* shared, const SessionKey& key, const PeerState* state) : shared_(shared), key_(key), state_(state) {}

  std::unique_ptr<SendLink> NewSend(const LinkName& name, SendOwner* owner, Counter* carried) override;
  std::unique_ptr<RecvLink> NewRecv(const LinkName& name, RecvOwner* owner, Counter* carried) override;
  std::unique_ptr<Oob> NewOob(const OobAddress& peer, OobOwner* owner) override;
  int fd() const override { return poller_.fd(); }
  // False: there was no descriptor for it, and no data will ever move.
  bool ok() const { return poller_.ok(); }
  bool Poll() override;
  void WatchAll() override;
  bool has_workers() const override { return shared_->workers != nullptr; }
  void RailUp(uint16_t rail, const Endpoint& remote_rail) override;

  // ---- for its links and its out-of-band connection ----

  void Add(TcpSendLink* link) { senders_.push_back(link); }
  void Add(TcpRecvLink* link) { receivers_.push_back(link); }
  void Remove(TcpSendLink* link) { std::erase(senders_, link); }
  void Remove(TcpRecvLink* link) { std::erase(receivers_, link); }
  // Some receiving socket is not in the poller, and NCCL's threads poll it.
  void set_unwatched() { unwatched_ = true; }
  Poller* poller() { return &poller_; }
  const SessionKey& key() const { return key_; }
  const PeerState& state() const { return *state_; }
  // The source of the rail's connections, and the rail's own address.
  const Source& source(uint16_t rail) const {
    return shared_->untied.load(std::memory_order_relaxed) ? shared_->loose[rail] : this->rail(rail);
  }
  const Source& rail(uint16_t rail) const { return shared_->rails[rail]; }
  // A connection to the rail came in by another interface: from now on no connection of the process is bound to an interface.
  void Untie(uint16_t rail, int incoming) const;
  const Source& oob_source() const { return shared_->oob_source; }
  uint8_t streams_per_rail() const { return shared_->streams_per_rail; }
  bool checksum() const { return shared_->checksum; }
  Workers* workers() const { return shared_->workers; }
  TcpProbes* probes() const { return shared_->probes; }
  // A connection could not be started; `failure`: an errno.
  void CannotConnect(int failure) const { shared_->descriptors->Failed(failure); }
  Nanos Now() const { return shared_->clock->Now(); }

 private:
  TcpShared* const shared_;
  const SessionKey key_;
  const PeerState* const state_;
  Poller poller_;
  std::vector<TcpSendLink*> senders_;
  std::vector<TcpRecvLink*> receivers_;
  bool unwatched_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_PORT_H_
