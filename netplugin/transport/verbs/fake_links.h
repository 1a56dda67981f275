// Builds two ends with a port each, and one link between them, over the fake fabric: for the tests of links and ports. The owners do what
// the test asks, and record what they get.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_LINKS_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_LINKS_H_

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/transport/verbs/fake_control_thread.h"
#include "netplugin/transport/verbs/fake_types.h"
#include "netplugin/transport/verbs/ticket.h"
#include "netplugin/transport/verbs/verbs_port.h"

namespace r2cc::net::verbs {

constexpr uint32_t kTag = 0x5eed;
constexpr FlowId kFlow = 5;
constexpr LinkName kLinkName{.link = 3, .incarnation = 7};
constexpr uint32_t kMessageBytes = 4096;
constexpr uint64_t kMemoryBytes = 64 * kMessageBytes;

// The common part of both owners.
template <typename Owner>
class FakeOwner : public Owner {
 public:
  std::shared_ptr<void> KeepAlive() override { return std::make_shared<int>(0); }
  void FrameReceived(const LinkName&, const Frame& frame) override {
    frames.push_back(frame);
    if (const auto* const report = std::get_if<FlowReport>(&frame)) acknowledged = std::max(acknowledged, report->placed_through);
  }
  void Trouble(const LinkName&, plan::EvidenceCause cause) override { troubles.push_back(cause); }
  void LinkClosed(LinkName, bool ok) override { closed.push_back(ok); }
  void Ready(const LinkName&) override { ++ready; }
  bool WithLock(FunctionRef<bool()> report, FunctionRef<bool(bool)>) override {
    report();
    return true;
  }

  std::vector<Frame> frames;
  MessageId acknowledged = 0;
  std::vector<plan::EvidenceCause> troubles;
  std::vector<bool> closed;
  int ready = 0;
};

class FakeSendOwner final : public FakeOwner<SendOwner> {
 public:
  void Offer(const LinkName&, const Endpoint& endpoint) override { offers.push_back(endpoint); }
  void Connected(const LinkName&) override { connected = true; }
  bool Pull(const LinkName&, Chunk* chunk) override {
    if (chunks.empty()) return false;
    *chunk = chunks.front();
    chunks.pop_front();
    return true;
  }
  WriteTarget TargetOf(const LinkName&, const Chunk& chunk) const override {
    return {target + chunk.message % 64 * kMessageBytes + chunk.offset(), has_key ? &key : nullptr};
  }
  bool Expects(const Chunk& chunk) const override { return open && chunk.message >= acknowledged; }
  bool IsOpen(FlowId) const override { return open; }
  std::shared_ptr<const std::byte[]> CopyOf(const Chunk&) const override { return nullptr; }

  std::vector<Endpoint> offers;
  bool connected = false, open = true, has_key = true;
  std::deque<Chunk> chunks;
  uint64_t target = 0;
  Endpoint key;
};

class FakeRecvOwner final : public FakeOwner<RecvOwner> {
 public:
  bool Alive(const LinkName&) const override { return alive; }
  bool Begin(const LinkName&, const Chunk&, std::byte**) override { return false; }
  void Finish(const LinkName&, const Chunk&) override {}
  bool Placed(const LinkName&, const Chunk& header) override {
    placed.push_back(header);
    return accepts;
  }
  bool FindFlow(uint32_t slot, uint32_t slots, FlowId* flow, MessageId* through) const override {
    *flow = kFlow;
    *through = placed_through;
    return open && slot == kFlow % slots;
  }
  bool MayBePlaced(FlowId) const override { return may_be_placed; }
  void Answer(const LinkName&, const Endpoint& endpoint) override { answers.push_back(endpoint); }
  void Proved(const LinkName&, bool ok) override { proofs.push_back(ok); }
  void Flushed(const LinkName&, const FlushName& flush) override { flushed.push_back(flush.message); }

  bool alive = true, accepts = true, open = true, may_be_placed = true;
  MessageId placed_through = 0;
  std::vector<Chunk> placed;
  std::vector<Endpoint> answers;
  std::vector<bool> proofs;
  std::vector<MessageId> flushed;
};

class FakeLinks : public testing::Test {
 protected:
  // End 0 is the initiator's.
  struct End {
    std::unique_ptr<FakeVerbs> verbs;  // outlives the device
    VerbsShared shared;
    PeerState state;
    std::unique_ptr<VerbsPort> port;
    std::vector<std::byte> bytes = std::vector<std::byte>(kMemoryBytes);
    Memory memory;
    Counter carried;
  };
  struct TimelineClock final : Clock {
    explicit TimelineClock(const FakeTimeline* of) : time(of) {}
    Nanos Now() const override { return time->now(); }
    const FakeTimeline* const time;
  };

  explicit FakeLinks(bool adaptive_routing = false) : clock_(&time_), fabric_(&time_) {
    for (int host = 0; host < 2; ++host) {
      End& end = ends_[host];
      fabric_.AddDevice(host, "mlx5_0");
      end.verbs = std::make_unique<FakeVerbs>(&fabric_, host);
      end.shared.clock = &clock_;
      end.shared.random = [this] { return static_cast<uint32_t>(time_.Random()); };
      end.shared.log = [this](LogLevel, const std::string& line) { lines_.push_back(line); };
      end.shared.site.adaptive_routing = adaptive_routing;
      std::string error;
      const auto device = Device::Open(end.verbs.get(), {"mlx5_0", "mlx5_core", 1}, std::make_unique<FakeControlThread>(&time_), &error);
      EXPECT_NE(device, nullptr) << error;
      int failed = 0;
      end.shared.rails.push_back({Domain::Allocate(device, &failed), 1, {}});
      end.shared.keys_revoked = [](uint16_t) {};
      end.state.jobs_thread = true;
      end.port = std::make_unique<VerbsPort>(&end.shared, SessionKey{1, kTag}, &end.state);
      end.memory = {.id = 1, .base = end.bytes.data(), .bytes = end.bytes.size()};
      uint32_t key = 0;
      EXPECT_EQ(end.shared.regions.Register(end.shared.rails[0].domain, 0, end.memory, &key, &error), 0) << error;
      if (host == 1) sender_.key = EncodeKey(key);
    }
    sender_.target = reinterpret_cast<uintptr_t>(ends_[1].bytes.data());
  }
  // Ends like a transport: links are closed, and jobs that are not done by then are dropped, because they hold the device that holds them.
  ~FakeLinks() override {
    if (send_ != nullptr && sender_.closed.empty()) send_->Close();
    if (recv_ != nullptr && receiver_.closed.empty()) recv_->Close();
    time_.RunFor(kNanosPerSecond);
    send_ = nullptr;
    recv_ = nullptr;
    for (End& end : ends_) {
      end.port = nullptr;
      for (const auto& rail : end.shared.rails) rail.device()->control()->Stop();
    }
  }

  void OpenSend() {
    send_ = ends_[0].port->NewSend(kLinkName, &sender_, &ends_[0].carried);
    send_->Open(Encode(RailAddress{}), {});
    time_.RunFor(kNanosPerMs);
    ASSERT_EQ(sender_.offers.size(), 1u);
  }
  bool Attach(const Endpoint& offer, bool* control) {
    auto connection = ends_[1].port->Offered(offer);
    std::string reason;
    return recv_->Attach({}, {}, &connection, control, &reason);
  }
  void AttachRecv() {
    recv_ = ends_[1].port->NewRecv(kLinkName, &receiver_, &ends_[1].carried);
    bool control = false;
    ASSERT_TRUE(Attach(sender_.offers[0], &control));
    EXPECT_TRUE(control);
    time_.RunFor(kNanosPerMs);
    ASSERT_EQ(receiver_.answers.size(), 1u);
  }
  // Greeted, proved and started.
  void Connect() {
    OpenSend();
    AttachRecv();
    send_->Answered(true, receiver_.answers[0]);
    time_.RunFor(kNanosPerMs);
    ASSERT_TRUE(sender_.connected);
    send_->Prove();
    LookFor(5 * kNanosPerMs);
    ASSERT_EQ(receiver_.proofs, std::vector<bool>{true});
    send_->Start();
  }
  void LookFor(Nanos time) {
    for (const Nanos end = time_.now() + time; time_.now() < end;) {
      time_.RunFor(100'000);
      for (End& one : ends_) one.port->Poll();
    }
  }
  Chunk ChunkOf(MessageId message, uint32_t chunk_bytes = kMessageBytes, uint32_t index = 0) {
    Chunk chunk{.flow = kFlow, .message = message, .message_bytes = kMessageBytes, .chunk_bytes = chunk_bytes, .index = index};
    chunk.data = ends_[0].bytes.data() + message % 64 * kMessageBytes + chunk.offset();
    chunk.bytes = std::min<uint32_t>(chunk_bytes, kMessageBytes - static_cast<uint32_t>(chunk.offset()));
    chunk.memory = &ends_[0].memory;
    return chunk;
  }
  // Sends what the acceptor's session would send.
  void Acknowledge(MessageId through) {
    receiver_.placed_through = through;
    recv_->control()->Queue(FlowReport{.flow = kFlow, .placed_through = through});
    EXPECT_TRUE(recv_->control()->Flush());
  }

  FakeTimeline time_;
  const TimelineClock clock_;
  FakeFabric fabric_;
  std::vector<std::string> lines_;
  End ends_[2];
  FakeSendOwner sender_;
  FakeRecvOwner receiver_;
  std::unique_ptr<SendLink> send_;
  std::unique_ptr<RecvLink> recv_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_LINKS_H_
