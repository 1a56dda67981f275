// Flows that are closed with receives posted, as every communicator of CollNet and each aborted one closes them, while a flow of another
// communicator to the same process goes on: its links stay, and it does not slow down.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/busy_flows.h"

namespace r2cc::sim {
namespace {

constexpr int kCloses = 100;
constexpr Nanos kBetween = 10 * kNanosPerMs;

enum class How {
  kQuiet,        // nothing on the way
  kSending,      // the receiver closes, with a message on the way
  kAbortedBoth,  // so does the sender
};

// A hundred more: a flow each.
class Communicators : public BusyFlows {
 public:
  Communicators(int rails, How how, int receives = 2) : BusyFlows(rails), how_(how), receives_(receives) {
    for (int i = 1; i <= kCloses; ++i) {
      flows_.push_back(std::make_unique<Flow>());
      process(1).Listen(static_cast<uint64_t>(i));
    }
    Begin();
  }
  int closed() const {
    int closed = 0;
    for (const auto& flow : flows_) closed += flow->closed;
    return closed;
  }
  void StartClosing() { closing_ = true; }

 private:
  struct Flow {
    Process::SendFlow sender;
    Process::RecvFlow receiver;
    bool connected = false, accepted = false, closing = false, closed = false, send_closed = false;
    const net::Memory *out_memory = nullptr, *in_memory = nullptr;
    std::vector<std::byte> out = std::vector<std::byte>(kBytes), in = out;
  };

  void SendMore() override {
    for (size_t i = 0; i < flows_.size(); ++i) {
      Flow& flow = *flows_[i];
      if (!std::exchange(flow.connected, true)) flow.sender = process(0).Connect(1, i + 1, 0);
      if (how_ == How::kQuiet || !flow.accepted) continue;
      if (flow.out_memory == nullptr && !flow.closing) {
        flow.out_memory = process(0).Register(flow.out.data(), kBytes, false);
        flow.sender.peer->Submit(flow.sender.id, {flow.out.data(), flow.out_memory}, kBytes);
      }
      if (how_ != How::kAbortedBoth || !flow.closing || std::exchange(flow.send_closed, true)) continue;
      const net::PeerLock lock(*flow.sender.peer);
      flow.sender.peer->Close(flow.sender.id);
    }
  }
  void ReceiveMore() override {
    for (size_t i = 0; i < flows_.size(); ++i) {
      Flow& flow = *flows_[i];
      if (!flow.accepted && process(1).Accept(i + 1, &flow.receiver)) {
        flow.accepted = true;
        flow.in_memory = process(1).Register(flow.in.data(), kBytes, false);
        // More of them than anybody sends.
        for (int post = 0; post < receives_; ++post) flow.receiver.peer->Submit(flow.receiver.id, {flow.in.data(), flow.in_memory}, kBytes);
      }
      if (closing_ && flow.accepted && !flow.closing && now() - last_close_ >= kBetween) {
        last_close_ = now();
        flow.closing = true;
        const net::PeerLock lock(*flow.receiver.peer);
        flow.receiver.peer->Close(flow.receiver.id);
      }
      if (!flow.closing || flow.closed) continue;
      {
        const net::PeerLock lock(*flow.receiver.peer);
        if (flow.receiver.peer->Holds(flow.receiver.id)) continue;
      }
      flow.closed = true;
      process(1).Unregister(flow.in_memory);
    }
  }

  const How how_;
  const int receives_;
  std::vector<std::unique_ptr<Flow>> flows_;
  bool closing_ = false;
  Nanos last_close_ = 0;
};

TEST(Closes, LeaveTheLinksOfOtherFlowsAlone) {
  for (const int rails : {1, 2})
    for (const How how : {How::kQuiet, How::kSending, How::kAbortedBoth}) {
      SCOPED_TRACE(std::to_string(rails) + " rails, " + std::to_string(static_cast<int>(how)));
      Communicators world(rails, how);
      world.RunFor(500 * kNanosPerMs);
      const auto incarnations = world.Incarnations();
      const uint64_t begin = world.received();
      world.TakeLongestStall();
      world.RunFor(kNanosPerSecond);
      const uint64_t alone = world.received() - begin;
      const Nanos usual_stall = world.TakeLongestStall();
      ASSERT_GT(alone, 1000u);
      world.StartClosing();
      world.RunFor(kNanosPerSecond);
      const uint64_t shared = world.received() - begin - alone;
      const Nanos stall = world.TakeLongestStall();
      world.RunFor(500 * kNanosPerMs);
      EXPECT_EQ(world.closed(), kCloses);
      EXPECT_EQ(world.fences(), 0);
      EXPECT_EQ(world.Incarnations(), incarnations);
      EXPECT_GE(static_cast<double>(shared), 0.95 * static_cast<double>(alone));
      EXPECT_LE(stall, usual_stall * 11 / 10);
    }
}

// One device cannot end a queue pair. No buffer of these flows was ever given to it, nor to any other.
TEST(Closes, ClosesOfUnwrittenFlowsWaitForNoLink) {
  Communicators world(2, How::kQuiet, 0);
  world.RunFor(500 * kNanosPerMs);
  world.process(1).io().closing.fails = true;
  world.rails().Reset({0, 1}, {1, 1}, 3, true);
  world.RunFor(100 * kNanosPerMs);
  world.StartClosing();
  const uint64_t begin = world.received();
  world.RunFor(2 * kNanosPerSecond);
  EXPECT_EQ(world.closed(), kCloses);
  EXPECT_GT(world.received(), begin + 1000) << "the other rail carries";
}

}  // namespace
}  // namespace r2cc::sim
