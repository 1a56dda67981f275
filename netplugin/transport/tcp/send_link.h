// Runs one incarnation of a link at the initiator's end: a control socket and some bulk sockets.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_LINK_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_LINK_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "netplugin/transport/links.h"
#include "netplugin/transport/tcp/budget.h"
#include "netplugin/transport/tcp/bulk.h"
#include "netplugin/transport/tcp/connector.h"
#include "netplugin/transport/tcp/control_socket.h"
#include "netplugin/transport/tcp/io_task.h"

namespace r2cc::net {

class TcpPort;

class TcpSendLink final : public SendLink {
 public:
  TcpSendLink(TcpPort* port, const LinkName& name, SendOwner* owner, Counter* carried);
  ~TcpSendLink() override;

  ControlChannel* control() override { return &control_; }
  bool Close() override;

  void Open(const Endpoint& remote_rail, const Hello& hello) override;
  void Prove() override;
  void Start() override;
  Room Pump(int most, bool retry) override;
  bool busy() const override;
  Sent SendNow(FunctionRef<bool(Chunk*)> post) override;
  void Retarget(FlowId flow, MessageId message, const std::byte* copy) override;
  bool Holds(FlowId flow) override;
  uint32_t Coming() override;
  void OfferChunks(FunctionRef<bool(uint32_t chunks)> claim) override;
  LinkFacts Measure() override;
  void Advise(const LinkAdvice& advice) override;

 private:
  class Task;
  struct Bulk {
    std::unique_ptr<BulkSender> sender;  // null until its greeting is answered
    Poller::Token token = 0;
    bool blocked = false;                    // full, as far as is known
    std::vector<size_t> proof_offsets = {};  // of the data check: see BulkSender::SendProof
    SocketOwnership ownership;

    bool ours() const { return sender != nullptr && !ownership.by_worker(); }
  };
  bool has_workers() const;
  // The sockets that take chunks. With workers, the first socket is reserved for messages that are sent as they are posted.
  size_t streams_begin() const { return has_workers() ? 1 : 0; }
  size_t streams_end() const { return std::min(bulk_.size(), streams_begin() + budget_.sockets); }
  bool takes_chunks(size_t index) const { return index >= streams_begin() && index < streams_end(); }
  // `socket`: -1 is the control channel.
  void Greeted(int socket, std::unique_ptr<PacketStream> stream);
  void BulkEvent(size_t index, uint32_t events);
  void Trouble(plan::EvidenceCause cause) { owner_->Trouble(name_, cause); }
  // Loads, writes once, and handles the result. If a worker does it, only the write is made without the lock.
  bool Load(size_t index);
  bool Wrote(size_t index, BulkSender::Result result, uint64_t sent_bytes);
  // True if chunks were moved, and there is room for more.
  bool PumpSocket(size_t index);
  void LimitQueue(const BulkSender& sender) const;
  PathFacts FactsOf(const Bulk& bulk, const TcpStats& stats) const;
  // How many chunks leave with one call of a worker.
  uint32_t ChunksTogether() const;

  TcpPort* const port_;
  const LinkName name_;
  SendOwner* const owner_;
  Counter* const carried_;
  std::vector<std::unique_ptr<Connector>> connectors_;  // the control socket's, then one a bulk socket; greeted or not yet
  size_t hello_bytes_ = 0;                              // what each connection sends before its first packet of bulk
  ControlSocket control_;
  std::vector<Bulk> bulk_;
  bool closed_ = false;
  LinkAdvice advice_;
  Budget budget_ = BudgetOf({});
  Nanos round_trip_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_LINK_H_
