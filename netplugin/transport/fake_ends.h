// Fakes links, an out-of-band connection and the transports of both: they do nothing, and a test sets their results. For tests of the two
// ends of a peer.
#ifndef R2CC_NETPLUGIN_TRANSPORT_FAKE_ENDS_H_
#define R2CC_NETPLUGIN_TRANSPORT_FAKE_ENDS_H_

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/transport/host.h"
#include "netplugin/transport/links.h"
#include "netplugin/transport/oob.h"

namespace r2cc::net {

struct FakeChannel final : ControlChannel {
  void Queue(const Frame& frame) override { frames.push_back(frame); }
  bool Flush() override { return true; }
  bool flushed() const override { return true; }
  void HalfClose() override {}
  void Poll() override {}

  std::vector<Frame> frames;  // all that was queued
};

struct FakeSendLink final : SendLink {
  FakeSendLink(const LinkName& of, SendOwner* by) : name(of), owner(by) {}
  ControlChannel* control() override { return &channel; }
  bool Close() override { return true; }
  void Open(const Endpoint&, const Hello&) override {}
  void Prove() override {}
  void Start() override {}
  Room Pump(int, bool) override { return Room::kNone; }
  bool busy() const override { return false; }
  Sent SendNow(FunctionRef<bool(Chunk*)>) override { return Sent::kNot; }
  void Retarget(FlowId, MessageId, const std::byte*) override {}
  bool Holds(FlowId) override { return false; }
  LinkFacts Measure() override { return {}; }

  const LinkName name;
  SendOwner* const owner;
  FakeChannel channel;
};

// Its close lasts until a test calls LinkClosed().
struct FakeRecvLink final : RecvLink {
  FakeRecvLink(const LinkName& of, RecvOwner* by) : name(of), owner(by) {}
  ControlChannel* control() override { return &channel; }
  bool Close() override { return false; }
  bool Attach(const Hello&, const HelloReply&, std::unique_ptr<Connection>* greeted, bool*, std::string*) override {
    attached.push_back(std::move(*greeted));
    return true;
  }
  bool Poll(FlowId) override { return false; }
  bool Forget(FlowId) override { return true; }

  const LinkName name;
  RecvOwner* const owner;
  FakeChannel channel;
  std::vector<std::unique_ptr<Connection>> attached;
};

struct FakeOob final : Oob {
  explicit FakeOob(OobOwner* by) : owner(by) {}
  void Open(const Hello&) override { opening = true; }
  void Attach(std::unique_ptr<Connection>, const HelloReply&) override {}
  void Close() override { opening = false; }
  ControlChannel* control() override { return &channel; }
  void Probe(Nanos) override {}
  void Tick() override {}

  OobOwner* const owner;
  FakeChannel channel;
  bool opening = false;  // or open
};

// The last of each that was made, of both transports and of any peer.
struct FakeEnds {
  FakeOob* oob = nullptr;
  FakeSendLink* sends = nullptr;
  FakeRecvLink* receives = nullptr;
};

class FakeEndsPort final : public OobPort {
 public:
  explicit FakeEndsPort(FakeEnds* ends) : ends_(ends) {}
  std::unique_ptr<SendLink> NewSend(const LinkName& name, SendOwner* owner, Counter*) override {
    auto link = std::make_unique<FakeSendLink>(name, owner);
    ends_->sends = link.get();
    return link;
  }
  std::unique_ptr<RecvLink> NewRecv(const LinkName& name, RecvOwner* owner, Counter*) override {
    auto link = std::make_unique<FakeRecvLink>(name, owner);
    ends_->receives = link.get();
    return link;
  }
  std::unique_ptr<Oob> NewOob(const OobAddress&, OobOwner* owner) override {
    auto oob = std::make_unique<FakeOob>(owner);
    ends_->oob = oob.get();
    return oob;
  }
  bool Poll() override { return true; }

 private:
  FakeEnds* const ends_;
};

class FakeEndsTransport final : public OobTransport {
 public:
  explicit FakeEndsTransport(FakeEnds* ends) : ends_(ends) {}
  TransportKind kind() const override { return TransportKind::kTcp; }
  bool ListenOob(const std::string&, uint16_t*, std::string*) override { return true; }
  bool Reaches(const OobAddress&) const override { return true; }
  bool Listen(const Rail&, Endpoint*, std::string*) override { return true; }
  bool Register(const Memory&, uint16_t, Endpoint*, std::string*) override { return true; }
  uint32_t flow_slots() const override { return slots; }
  std::unique_ptr<OobPort> NewOobPort(const SessionKey&, const PeerState*) override { return std::make_unique<FakeEndsPort>(ends_); }

  uint32_t slots = 0;

 private:
  FakeEnds* const ends_;
};

// A process with `count` rails on that transport.
struct FakeEndsHost : Host {
  FakeEndsHost(const Clock* of, int count) {
    clock = of;
    transports = {&transport};
    oob_transport = &transport;
    silence = 250 * kNanosPerMs;
    deadline = 30 * kNanosPerSecond;
    log = [this](LogLevel, const std::string& line) { lines.push_back(line); };
    report = [](const plan::EvidenceRecord&) {};
    page = [] { return std::make_shared<const PageView>(); };
    node = "here";
    rails.resize(static_cast<size_t>(count));
    for (LocalRail& rail : rails) {
      rail.name = rail.nic = "rail" + std::to_string(&rail - rails.data());
      rail.endpoints = {{TransportKind::kTcp, {1}}};
    }
    UpdateNames();
  }

  FakeEnds ends;
  FakeEndsTransport transport{&ends};
  std::vector<std::string> lines;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_FAKE_ENDS_H_
