// The least transport: links that are queues in memory between two hosts of one test. Of the plugin it knows netplugin/transport/links.h
// and nothing else. A chunk stays in the sender's memory until its rail begins to carry it; the receiving end writes it where its peer
// says.
#ifndef R2CC_TESTS_CONTRACT_STUB_STUB_TRANSPORT_H_
#define R2CC_TESTS_CONTRACT_STUB_STUB_TRANSPORT_H_

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/transport/links.h"
#include "tests/sim/network.h"

namespace r2cc::net::stub {

using plan::EvidenceCause;

constexpr size_t kQueuedMost = 4;
// From Close() until the device leaves buffers alone: peers that do not wait for it are found out.
constexpr Nanos kCloseTakes = 30 * kNanosPerMs;

struct Wire;

// What the two hosts share. The network says the time, what is wrong with which rail, and who is dead; its packets are not used.
struct Fabric {
  sim::Network* network = nullptr;
  struct Host {
    std::function<void()> wake;                                      // the process looks at its ports soon
    const bool* close_fails = nullptr;                               // its device cannot finish a close
    std::vector<std::pair<Hello, std::shared_ptr<Wire>>> greetings;  // that the process has not heard yet
  } hosts[2];
};

// What is between the two ends of one incarnation. Side 0 is the initiator's.
struct Wire {
  Fabric* fabric = nullptr;
  sim::Port port[2];
  bool closed[2] = {false, false};
  std::optional<bool> accepted;  // the greeting, if it was answered
  std::deque<Frame> frames[2];   // to each side
  bool proof = false;            // the data check is on its way
  std::deque<Chunk> queued;      // in the initiator's memory
  LinkFacts facts;

  int64_t rate() const { return fabric->network->BytesPerS(port[0], port[1]); }  // 0: nothing passes, either way
  void Wake(int side) const { fabric->hosts[port[side].host].wake(); }
  void Close(int side) {
    closed[side] = true;
    for (auto& to : frames) to.clear();
    Wake(1 - side);
  }
};

// A greeted wire on its way to its link.
struct StubConnection final : Connection {
  explicit StubConnection(std::shared_ptr<Wire> of) : wire(std::move(of)) {}
  ~StubConnection() override {
    if (wire != nullptr) wire->Close(1);
  }
  std::shared_ptr<Wire> wire;
};

// What a port polls. Look() may destroy it.
struct Polled {
  virtual ~Polled() = default;
  virtual void Look() = 0;
};

class StubPort final : public Port {
 public:
  StubPort(Fabric* of, int at) : fabric(of), host(at) {}
  std::unique_ptr<SendLink> NewSend(const LinkName& name, SendOwner* owner, Counter* carried) override;
  std::unique_ptr<RecvLink> NewRecv(const LinkName& name, RecvOwner* owner, Counter* carried) override;
  bool Poll() override {
    for (const auto now = links; Polled* const link : now) link->Look();
    return true;
  }

  Fabric* const fabric;
  const int host;
  std::vector<Polled*> links;
};

// What both ends have in common; each is its own control channel.
template <typename Base, typename Owner, int kSide>
class StubLink : public Base, public Polled, private ControlChannel {
 public:
  StubLink(StubPort* port, const LinkName& name, Owner* owner, Counter* carried)
      : port_(port), name_(name), owner_(owner), carried_(carried) {
    wire_->fabric = port->fabric;
    wire_->port[0] = {port->host, name.local_rail};
    wire_->port[1] = {1 - port->host, name.remote_rail};
    port->links.push_back(this);
  }
  ~StubLink() override { std::erase(port_->links, this); }

  ControlChannel* control() override { return this; }
  bool Close() override {
    wire_->Close(kSide);
    closes_at_ = now() + kCloseTakes;
    WakeAt(*closes_at_);
    return false;
  }

 protected:
  virtual void LookAlive() = 0;
  // From here on no buffer is touched.
  virtual void End() = 0;
  void Trouble(EvidenceCause cause) { owner_->Trouble(name_, cause); }
  Nanos now() const { return port_->fabric->network->timeline()->now(); }
  void WakeAt(Nanos when) { port_->fabric->network->timeline()->At(std::max(when, now()), port_->fabric->hosts[port_->host].wake); }

  StubPort* const port_;
  const LinkName name_;
  Owner* const owner_;
  Counter* const carried_;
  std::shared_ptr<Wire> wire_ = std::make_shared<Wire>();  // an acceptor's leads nowhere until something is attached
  std::optional<Nanos> closes_at_;

 private:
  void Look() override {
    if (!closes_at_) {
      Poll();
      return LookAlive();
    }
    if (now() < *closes_at_) return;
    const bool fails = *port_->fabric->hosts[port_->host].close_fails;
    if (std::exchange(reported_, fails) && fails) return;
    if (!fails) End();
    owner_->LinkClosed(name_, !fails);
  }
  // ControlChannel:
  void Queue(const Frame& frame) override {
    wire_->frames[1 - kSide].push_back(frame);
    wire_->Wake(1 - kSide);
  }
  bool Flush() override { return true; }
  bool flushed() const override { return true; }
  void HalfClose() override { wire_->closed[kSide] = true; }
  void Poll() override {
    if (wire_->rate() == 0) return;
    for (auto& frames = wire_->frames[kSide]; !frames.empty(); frames.pop_front()) owner_->FrameReceived(name_, frames.front());
    if (wire_->closed[1 - kSide] || wire_->fabric->network->Dead(wire_->port[1 - kSide].host)) Trouble(EvidenceCause::kSocketError);
  }

  bool reported_ = false;  // that the close failed
};

class StubSendLink final : public StubLink<SendLink, SendOwner, 0> {
 public:
  using StubLink::StubLink;
  void Open(const Endpoint& remote_rail, const Hello& hello) override {
    if (remote_rail != Endpoint{static_cast<uint8_t>(name_.remote_rail)}) return Trouble(EvidenceCause::kLinkDown);
    port_->fabric->hosts[1 - port_->host].greetings.emplace_back(hello, wire_);
    wire_->Wake(1);
  }
  void Prove() override {
    wire_->proof = true;
    wire_->Wake(1);
  }
  void Start() override { started_ = true; }
  Room Pump(int most, bool) override {
    for (Chunk chunk; most > 0 && has_room() && owner_->Pull(name_, &chunk); --most) Send(chunk);
    return most == 0 && has_room() ? Room::kLeft : Room::kNone;
  }
  bool busy() const override { return false; }  // what is queued is with the device
  Sent SendNow(FunctionRef<bool(Chunk*)> post) override {
    Chunk chunk;
    if (!has_room() || !post(&chunk)) return Sent::kNot;
    Send(chunk);
    return Sent::kBufferInUse;
  }
  void Retarget(FlowId flow, MessageId message, const std::byte* copy) override {
    for (Chunk& chunk : wire_->queued)
      if (chunk.flow == flow && chunk.message == message) chunk.data = copy;
  }
  bool Holds(FlowId flow) override {
    return std::any_of(wire_->queued.begin(), wire_->queued.end(), [flow](const Chunk& chunk) { return chunk.flow == flow; });
  }
  LinkFacts Measure() override {
    LinkFacts facts = wire_->facts;
    facts.limited = !wire_->queued.empty();
    return facts;
  }

 private:
  bool has_room() const { return started_ && wire_->queued.size() < kQueuedMost; }
  void Send(const Chunk& chunk) {
    wire_->queued.push_back(chunk);
    wire_->Wake(1);
    *carried_ += chunk.bytes;
  }
  void LookAlive() override {
    if (wire_->accepted && wire_->rate() > 0)
      *std::exchange(wire_->accepted, {}) ? owner_->Connected(name_) : Trouble(EvidenceCause::kPeerFenced);
    if (has_room()) owner_->Ready(name_);
  }
  void End() override { wire_->queued.clear(); }

  bool started_ = false;
};

class StubRecvLink final : public StubLink<RecvLink, RecvOwner, 1> {
 public:
  using StubLink::StubLink;
  bool Attach(const Hello&, const HelloReply& reply, std::unique_ptr<Connection>* greeted, bool* control, std::string* reason) override {
    *reason = "the link has it already";
    if (attached_) return false;
    wire_ = std::exchange(static_cast<StubConnection&>(**greeted).wire, nullptr);
    greeted->reset();
    wire_->accepted = reply.accepted;
    wire_->Wake(0);
    return *control = attached_ = true;
  }
  bool Poll(FlowId) override {
    bool any = false;
    for (; wire_->rate() > 0 && owner_->Alive(name_) && (due_ ? *due_ <= now() : !wire_->queued.empty()); any = true)
      due_ ? EndChunk() : BeginChunk();
    return any;
  }
  bool Forget(FlowId flow) override {
    if (to_ == nullptr || arriving_.flow != flow) return true;
    // A device that is being closed still writes where it was told to.
    if (!closes_at_) to_ = nullptr;
    return to_ == nullptr;
  }

 private:
  void BeginChunk() {
    arriving_ = wire_->queued.front();
    wire_->queued.pop_front();
    wire_->Wake(0);
    if (!owner_->Begin(name_, arriving_, &to_)) return Trouble(EvidenceCause::kGarbled);
    bytes_.assign(arriving_.data, arriving_.data + arriving_.bytes);
    const Nanos takes = static_cast<Nanos>(arriving_.bytes) * kNanosPerSecond / wire_->rate();
    wire_->facts.busy += takes;
    WakeAt(*(due_ = now() + takes));
  }
  void EndChunk() {
    due_.reset();
    wire_->facts.delivered_bytes += arriving_.bytes;
    *carried_ += arriving_.bytes;
    if (to_ == nullptr) return;
    End();
    owner_->Finish(name_, arriving_);
  }
  void LookAlive() override {
    if (wire_->rate() > 0 && std::exchange(wire_->proof, false)) owner_->Proved(name_, true);
    Poll(0);
  }
  // As late as can be.
  void End() override {
    if (to_ != nullptr) std::copy(bytes_.begin(), bytes_.end(), std::exchange(to_, nullptr));
  }

  bool attached_ = false;
  Chunk arriving_;
  std::vector<std::byte> bytes_;  // of it
  std::byte* to_ = nullptr;       // null: nowhere
  std::optional<Nanos> due_;      // none: nothing is on the rail
};

inline std::unique_ptr<SendLink> StubPort::NewSend(const LinkName& name, SendOwner* owner, Counter* carried) {
  return std::make_unique<StubSendLink>(this, name, owner, carried);
}
inline std::unique_ptr<RecvLink> StubPort::NewRecv(const LinkName& name, RecvOwner* owner, Counter* carried) {
  return std::make_unique<StubRecvLink>(this, name, owner, carried);
}

class StubTransport final : public Transport {
 public:
  StubTransport(std::shared_ptr<Fabric> fabric, int host, Greet greet)
      : fabric_(std::move(fabric)), host_(host), greet_(std::move(greet)) {}
  // Nobody looks at its ports any more, and the other process may be there for longer.
  ~StubTransport() override { fabric_->hosts[host_].wake = [] {}; }
  StubTransport(const StubTransport&) = delete;
  StubTransport& operator=(const StubTransport&) = delete;
  TransportKind kind() const override { return TransportKind::kVerbs; }  // TCP's is the out-of-band one
  bool Listen(const Rail& rail, Endpoint* own, std::string*) override {
    *own = {static_cast<uint8_t>(rail.index)};
    return true;
  }
  bool Register(const Memory&, uint16_t, Endpoint*, std::string*) override { return true; }
  std::unique_ptr<Port> NewPort(const SessionKey&, const PeerState*) override { return std::make_unique<StubPort>(fabric_.get(), host_); }
  void Tick(Nanos) override {
    auto& greetings = fabric_->hosts[host_].greetings;
    for (auto& [hello, wire] : std::exchange(greetings, {})) {
      if (wire->rate() == 0) greetings.emplace_back(hello, wire);  // it is said again
      if (wire->rate() == 0 || wire->closed[0]) continue;
      std::unique_ptr<Connection> connection = std::make_unique<StubConnection>(wire);
      if (!greet_(hello, &connection).accepted) wire->accepted = false;
    }
  }

 private:
  const std::shared_ptr<Fabric> fabric_;
  const int host_;
  const Greet greet_;
};

}  // namespace r2cc::net::stub

#endif  // R2CC_TESTS_CONTRACT_STUB_STUB_TRANSPORT_H_
