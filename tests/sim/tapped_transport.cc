#include "tests/sim/tapped_transport.h"

namespace r2cc::sim {
namespace {

using net::LinkName;
using plan::EvidenceCause;

// Who owns a link, heard by the tap first. A control thread may need it for longer than the link lives.
template <typename Owner>
class Tapped : public Owner, public std::enable_shared_from_this<Tapped<Owner>> {
 public:
  Tapped(const TransportTap* tap, Owner* of) : tap_(tap), of_(of) {}

  std::shared_ptr<void> KeepAlive() override {
    struct Both {
      std::shared_ptr<void> tapped, of;
    };
    auto of = of_->KeepAlive();
    return of == nullptr ? nullptr : std::make_shared<Both>(this->weak_from_this().lock(), std::move(of));
  }
  void FrameReceived(const LinkName& name, const net::Frame& frame) override { of_->FrameReceived(name, frame); }
  void Trouble(const LinkName& name, EvidenceCause cause) override {
    if (tap_->io->logs())
      tap_->io->Log("link " + std::to_string(name.link) + "/" + std::to_string(name.incarnation) + " " + plan::CauseName(cause));
    if (cause == EvidenceCause::kGarbled) tap_->io->tap->Garbled(Who(name));
    of_->Trouble(name, cause);
  }
  void LinkClosed(LinkName name, bool ok) override {
    if (ok) Ended(name);
    of_->LinkClosed(name, ok);
  }
  void Ready(const LinkName& name) override { of_->Ready(name); }
  bool WithLock(FunctionRef<bool()> report, FunctionRef<bool(bool posted)> ask) override { return of_->WithLock(report, ask); }

  void set_peer(int peer) { peer_ = peer; }
  int peer() const { return peer_; }
  virtual Carrying Who(const LinkName& name) const = 0;
  virtual void Ended(const LinkName&) {}

 protected:
  Io& io() const { return *tap_->io; }
  const TransportTap* const tap_;
  Owner* const of_;

 private:
  int peer_ = 0;
};

class TappedSendOwner final : public Tapped<net::SendOwner> {
 public:
  using Tapped::Tapped;
  Carrying Who(const LinkName& name) const override { return {peer(), io().host, name.link, name.incarnation}; }
  void Offer(const LinkName& name, const net::Endpoint& endpoint) override { of_->Offer(name, endpoint); }
  void Connected(const LinkName& name) override { of_->Connected(name); }
  bool Pull(const LinkName& name, net::Chunk* chunk) override {
    if (!of_->Pull(name, chunk)) return false;
    if (io().logs())
      io().Log("link " + std::to_string(name.link) + "/" + std::to_string(name.incarnation) + " carries chunk " +
               std::to_string(chunk->index) + " of flow " + std::to_string(chunk->flow) + " message " + std::to_string(chunk->message));
    io().tap->ChunkSent(Who(name), *chunk);
    return true;
  }
  net::WriteTarget TargetOf(const LinkName& name, const net::Chunk& chunk) const override {
    const net::WriteTarget target = of_->TargetOf(name, chunk);
    if (chunk.bytes > 0) io().tap->Keyed(Who(name), chunk, target.key != nullptr, false);
    return target;
  }
  bool Expects(const net::Chunk& chunk) const override { return of_->Expects(chunk); }
  bool IsOpen(net::FlowId flow) const override { return of_->IsOpen(flow); }
  bool MayWrite(net::FlowId flow) const override { return of_->MayWrite(flow); }
  std::shared_ptr<const std::byte[]> CopyOf(const net::Chunk& chunk) const override { return of_->CopyOf(chunk); }
};

class TappedRecvOwner final : public Tapped<net::RecvOwner> {
 public:
  using Tapped::Tapped;
  Carrying Who(const LinkName& name) const override { return {io().host, peer(), name.link, name.incarnation}; }
  void Ended(const LinkName& name) override { io().tap->CarrierEnded(Who(name)); }
  bool Alive(const LinkName& name) const override { return of_->Alive(name); }
  bool Begin(const LinkName& name, const net::Chunk& header, std::byte** destination) override {
    return of_->Begin(name, header, destination);
  }
  void Finish(const LinkName& name, const net::Chunk& header) override { of_->Finish(name, header); }
  bool Placed(const LinkName& name, const net::Chunk& header) override {
    if (!io().tap->ChunkPlaced(Who(name), header)) return true;
    if (of_->Placed(name, header)) return true;
    io().tap->ChunkRefused(Who(name), header);
    return false;
  }
  bool FindFlow(uint32_t slot, uint32_t slots, net::FlowId* flow, net::MessageId* placed_through) const override {
    return of_->FindFlow(slot, slots, flow, placed_through);
  }
  bool MayBePlaced(net::FlowId flow) const override { return of_->MayBePlaced(flow); }
  void Answer(const LinkName& name, const net::Endpoint& endpoint) override {
    tap_->answered(Who(name), name.local_rail, endpoint);
    of_->Answer(name, endpoint);
  }
  void Flushed(const LinkName& name, const net::FlushName& flush) override { of_->Flushed(name, flush); }
  void Proved(const LinkName& name, bool ok) override { of_->Proved(name, ok); }
};

class TappedSendLink final : public net::SendLink {
 public:
  TappedSendLink(const TransportTap* tap, net::Port* port, const LinkName& name, net::SendOwner* owner, net::Counter* carried)
      : tap_(tap), name_(name), owner_(std::make_shared<TappedSendOwner>(tap, owner)), of_(port->NewSend(name, owner_.get(), carried)) {}

  net::ControlChannel* control() override { return of_->control(); }
  bool Close() override {
    if (started_) At(Moment::kLinkFencing);
    return of_->Close();
  }
  void Open(const net::Endpoint& remote_rail, const net::Hello& hello) override {
    owner_->set_peer(tap_->host_of(remote_rail));
    At(Moment::kLinkOpening);
    of_->Open(remote_rail, hello);
  }
  void Answered(bool accepted, const net::Endpoint& endpoint) override { of_->Answered(accepted, endpoint); }
  void Prove() override {
    At(Moment::kLinkProving);
    of_->Prove();
  }
  void Start() override {
    started_ = true;
    At(Moment::kLinkUp);
    of_->Start();
  }
  Room Pump(int most, bool retry) override { return of_->Pump(most, retry); }
  bool busy() const override { return of_->busy(); }
  Sent SendNow(FunctionRef<bool(net::Chunk*)> post) override { return of_->SendNow(post); }
  void Retarget(net::FlowId flow, net::MessageId message, const std::byte* copy) override { of_->Retarget(flow, message, copy); }
  bool Holds(net::FlowId flow) override { return of_->Holds(flow); }
  bool Release(net::FlowId flow) override { return of_->Release(flow); }
  uint32_t Coming() override { return of_->Coming(); }
  void OfferChunks(FunctionRef<bool(uint32_t chunks)> claim) override { of_->OfferChunks(claim); }
  net::LinkFacts Measure() override { return of_->Measure(); }
  void Advise(const net::LinkAdvice& advice) override { of_->Advise(advice); }

 private:
  void At(Moment moment) { tap_->io->tap->At(moment, tap_->io->host, owner_->peer(), name_.link); }

  const TransportTap* const tap_;
  const LinkName name_;
  const std::shared_ptr<TappedSendOwner> owner_;
  const std::unique_ptr<net::SendLink> of_;
  bool started_ = false;
};

class TappedRecvLink final : public net::RecvLink {
 public:
  TappedRecvLink(const TransportTap* tap, net::Port* port, const LinkName& name, net::RecvOwner* owner, net::Counter* carried)
      : tap_(tap), name_(name), owner_(std::make_shared<TappedRecvOwner>(tap, owner)), of_(port->NewRecv(name, owner_.get(), carried)) {}

  net::ControlChannel* control() override { return of_->control(); }
  bool Close() override {
    tap_->io->tap->At(Moment::kAcceptorEnds, owner_->peer(), tap_->io->host, name_.link);
    if (!of_->Close()) return false;
    owner_->Ended(name_);
    return true;
  }
  bool Attach(const net::Hello& hello, const net::HelloReply& reply, std::unique_ptr<net::Connection>* greeted, bool* control,
              std::string* reason) override {
    owner_->set_peer(tap_->host_of(hello.endpoint));
    return of_->Attach(hello, reply, greeted, control, reason);
  }
  bool Poll(net::FlowId wanted) override { return of_->Poll(wanted); }
  void ReadMore() override { of_->ReadMore(); }
  void Flush(const net::FlushName& flush, const net::Buffer& at) override { of_->Flush(flush, at); }
  bool Forget(net::FlowId flow) override { return of_->Forget(flow); }
  bool orders() const override { return of_->orders(); }

 private:
  const TransportTap* const tap_;
  const LinkName name_;
  const std::shared_ptr<TappedRecvOwner> owner_;
  const std::unique_ptr<net::RecvLink> of_;
};

class TappedPort final : public net::Port {
 public:
  TappedPort(const TransportTap* tap, std::unique_ptr<net::Port> of) : tap_(tap), of_(std::move(of)) {}
  std::unique_ptr<net::SendLink> NewSend(const LinkName& name, net::SendOwner* owner, net::Counter* carried) override {
    return std::make_unique<TappedSendLink>(tap_, of_.get(), name, owner, carried);
  }
  std::unique_ptr<net::RecvLink> NewRecv(const LinkName& name, net::RecvOwner* owner, net::Counter* carried) override {
    return std::make_unique<TappedRecvLink>(tap_, of_.get(), name, owner, carried);
  }
  std::unique_ptr<net::Connection> Offered(const net::Endpoint& endpoint) override { return of_->Offered(endpoint); }
  int fd() const override { return of_->fd(); }
  bool Poll() override { return of_->Poll(); }
  void WatchAll() override { of_->WatchAll(); }
  void RailUp(uint16_t rail, const net::Endpoint& remote_rail) override { of_->RailUp(rail, remote_rail); }
  bool has_workers() const override { return of_->has_workers(); }

 private:
  const TransportTap* const tap_;
  const std::unique_ptr<net::Port> of_;
};

}  // namespace

bool TappedTransport::Register(const net::Memory& memory, uint16_t rail, net::Endpoint* key, std::string* error) {
  if (tap_.io->refusing_rail == rail) {
    *error = "the device of rail " + std::to_string(rail) + " takes no memory";
    return false;
  }
  return of_->Register(memory, rail, key, error);
}

std::unique_ptr<net::Port> TappedTransport::NewPort(const net::SessionKey& key, const net::PeerState* state) {
  return std::make_unique<TappedPort>(&tap_, of_->NewPort(key, state));
}

}  // namespace r2cc::sim
