// FlowPort over the production peers in simulated time: rails that are lost in mid-transfer, and weights.

#include "netplugin/transport/flow_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "tests/sim/process.h"

namespace r2cc::sim {
namespace {

constexpr size_t kBytes = 64 * 1024;
constexpr uint64_t kWindow = 4;
constexpr Nanos kLimit = 60 * kNanosPerSecond;

std::byte PatternAt(uint64_t message, size_t at) { return static_cast<std::byte>(message * 31 + at * 7 + at / 251); }

// Two processes, each with a port, and flows from the first to the second, whose ends post as fast as they may.
class Pair : private Tap {
 public:
  explicit Pair(int rails) : timeline_(1), network_(&timeline_) {
    for (int from = 0; from < 2; ++from)
      for (int rail = kOobRail; rail < rails; ++rail)
        network_.SetPath({from, rail}, {1 - from, rail}, {.delay = 25'000, .rate_bytes_per_s = 50'000'000});
    for (int host = 0; host < 2; ++host) {
      ProcessOptions options{.rails = rails, .keys = true, .chunk_bytes = 8192, .eager_bytes = 1024};
      processes_[host] = std::make_unique<Process>(&network_, static_cast<Tap*>(this), host, options);
      processes_[host]->progress = [this, host] { host == 0 ? Send() : Receive(); };
    }
  }
  ~Pair() override { timeline_.Clear(); }

  // Until `done`, which must come.
  void RunUntil(const std::function<bool()>& done) {
    const Nanos limit = timeline_.now() + kLimit;
    while (!done() && timeline_.now() < limit && timeline_.RunNext()) continue;
    ASSERT_TRUE(done()) << received() << " messages received";
  }
  void Add(int rail, uint64_t messages, double weight) {
    auto flow = std::make_unique<Flow>();
    flow->rail = rail;
    flow->messages = messages;
    flow->weight = weight;
    flow->out.resize(kWindow * kBytes);
    flow->in.resize(kWindow * kBytes);
    processes_[1]->Listen(flows_.size());
    flows_.push_back(std::move(flow));
    for (const auto& process : processes_) process->Wake();
  }
  uint64_t received() const {
    uint64_t sum = 0;
    for (const auto& flow : flows_) sum += flow->received;
    return sum;
  }
  uint64_t received(size_t flow) const { return flows_[flow]->received; }
  bool over() const {
    return std::all_of(flows_.begin(), flows_.end(),
                       [](const auto& flow) { return flow->sent == flow->messages && flow->received == flow->messages; });
  }
  void Close() {
    for (const auto& flow : flows_) {
      ports_[0].Close(flow->sender);
      ports_[1].Close(flow->receiver);
    }
  }

  // Nobody posts or looks any more.
  void StopJobs() {
    for (const auto& process : processes_) process->progress = nullptr;
  }

  Network& network() { return network_; }
  net::PeerFlowPort& port(int host) { return ports_[host]; }
  net::FlowRef sender(size_t flow) const { return flows_[flow]->sender; }
  net::FlowRef receiver(size_t flow) const { return flows_[flow]->receiver; }
  int fences = 0;

 private:
  struct Flow {
    int rail = 0;
    uint64_t messages = 0;
    double weight = 1;
    std::vector<std::byte> out, in;
    const net::Memory *out_memory = nullptr, *in_memory = nullptr;
    bool connected = false, accepted = false;
    net::FlowRef sender = 0, receiver = 0;
    uint64_t posted = 0, sent = 0, taken = 0, received = 0;
  };
  static size_t PlaceOf(uint64_t message) { return message % kWindow * kBytes; }

  template <typename Opened>
  std::function<void()> CloseOf(const Opened& flow) {
    return [flow] {
      const net::PeerLock lock(*flow.peer);
      flow.peer->Close(flow.id);
    };
  }
  void Send() {
    for (size_t i = 0; i < flows_.size(); ++i) {
      Flow& flow = *flows_[i];
      if (!flow.connected) {
        const Process::SendFlow opened = processes_[0]->Connect(1, i, flow.rail);
        flow.connected = true;
        flow.sender = ports_[0].Add(opened.peer.get(), opened.id, opened.comm.get(), CloseOf(opened));
        EXPECT_TRUE(ports_[0].SetWeight(flow.sender, flow.weight));
        flow.out_memory = processes_[0]->Register(flow.out.data(), flow.out.size(), false);
      }
      flow.sent = ports_[0].DoneThrough(flow.sender);
      EXPECT_EQ(ports_[0].Error(flow.sender), "");
      for (; flow.posted < flow.messages && flow.posted < flow.sent + kWindow; ++flow.posted) {
        std::byte* const at = flow.out.data() + PlaceOf(flow.posted);
        for (size_t k = 0; k < kBytes; ++k) at[k] = PatternAt(flow.posted, k);
        EXPECT_TRUE(ports_[0].Send(flow.sender, {at, flow.out_memory}, kBytes));
      }
    }
  }
  void Receive() {
    for (size_t i = 0; i < flows_.size(); ++i) {
      Flow& flow = *flows_[i];
      Process::RecvFlow opened;
      if (!flow.accepted && processes_[1]->Accept(i, &opened)) {
        flow.accepted = true;
        flow.receiver = ports_[1].Add(opened.peer.get(), opened.id, opened.comm.get(), CloseOf(opened));
        EXPECT_FALSE(ports_[1].SetWeight(flow.receiver, 2)) << "the sender's";
        flow.in_memory = processes_[1]->Register(flow.in.data(), flow.in.size(), true);
      }
      if (!flow.accepted) continue;
      for (const uint64_t done = ports_[1].DoneThrough(flow.receiver); flow.received < done; ++flow.received) {
        const std::byte* const at = flow.in.data() + PlaceOf(flow.received);
        size_t wrong = 0;
        for (size_t k = 0; k < kBytes; ++k) wrong += at[k] != PatternAt(flow.received, k);
        EXPECT_EQ(wrong, 0u) << "flow " << i << " message " << flow.received;
      }
      EXPECT_EQ(ports_[1].Error(flow.receiver), "");
      for (; flow.taken < flow.messages && flow.taken < flow.received + kWindow; ++flow.taken)
        EXPECT_TRUE(ports_[1].Receive(flow.receiver, {flow.in.data() + PlaceOf(flow.taken), flow.in_memory}, kBytes));
    }
  }
  // Tap:
  void Recorded(int, int, int, const net::SessionAction& action) override {
    fences += action.kind == net::SessionAction::Kind::kLinkFenced;
  }

  Timeline timeline_;
  Network network_;
  net::PeerFlowPort ports_[2];
  std::vector<std::unique_ptr<Flow>> flows_;
  std::unique_ptr<Process> processes_[2];
};

TEST(FlowPort, ARailThatIsLostInMidTransferLosesNothing) {
  Pair pair(2);
  pair.Add(0, 200, 1);
  pair.Add(1, 200, 1);
  pair.RunUntil([&] { return pair.received() >= 60; });
  pair.network().BlockPort({0, 0});
  pair.RunUntil([&] { return pair.over(); });
  EXPECT_GT(pair.fences, 0);
  pair.Close();
}

TEST(FlowPort, FlowsThatShareALinkGetByTheirWeights) {
  Pair pair(1);
  pair.Add(0, 1000, 3);
  pair.Add(0, 1000, 1);
  pair.RunUntil([&] { return pair.received() >= 40; });
  const uint64_t first = pair.received(0), second = pair.received(1);
  pair.RunUntil([&] { return pair.received(0) >= first + 300; });
  EXPECT_NEAR(static_cast<double>(pair.received(1) - second), 100, 10);
  EXPECT_FALSE(pair.port(0).SetWeight(pair.sender(0), 0)) << "no weight at all";
  pair.Close();
}

TEST(FlowPort, TooManyRequestsAreNotPosted) {
  Pair pair(1);
  pair.Add(0, 1, 1);
  pair.RunUntil([&] { return pair.over(); });
  // Nobody posts a buffer for them.
  const std::vector<std::byte> bytes(kBytes);
  uint64_t posted = 0;
  while (pair.port(0).Send(pair.sender(0), bytes.data(), bytes.size())) ASSERT_LE(++posted, net::kRequestsMax);
  EXPECT_EQ(posted, net::kRequestsMax);
  EXPECT_EQ(pair.port(0).DoneThrough(pair.sender(0)), 1u);
  pair.Close();
}

TEST(FlowPort, APeerThatClosesIsAnError) {
  Pair pair(1);
  pair.Add(0, 1000, 1);
  pair.RunUntil([&] { return pair.received() >= 10; });
  net::FlowPort& sender = pair.port(0);
  const net::FlowRef flow = pair.sender(0);
  pair.StopJobs();
  pair.port(1).Close(pair.receiver(0));
  pair.RunUntil([&] { return !sender.Error(flow).empty(); });
  EXPECT_NE(sender.Error(flow).find("closed the flow"), std::string::npos);
  EXPECT_LT(sender.DoneThrough(flow), 1000u);
  sender.Close(flow);
}

}  // namespace
}  // namespace r2cc::sim
