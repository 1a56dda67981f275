// What a message of 512 KiB costs the devices of its two ends in steady state: work requests, completions, control messages. The production
// peers over the shipped verbs links, one rail, on a fake fabric that counts.

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "netplugin/transport/flow_port.h"
#include "tests/sim/process.h"
#include "tests/sim/verbs_rails.h"

namespace r2cc::sim {
namespace {

constexpr uint32_t kBytes = 512 * 1024;
// NCCL_STEPS: as many buffers as NCCL has for a channel.
constexpr uint64_t kWindow = 8;
// Until then connections are made, rates measured.
constexpr uint64_t kWarmUp = 200;
constexpr uint64_t kCounted = 1000;
constexpr Nanos kLimit = 60 * kNanosPerSecond;

struct Cost {
  double requests = 0, completions = 0, control = 0, doorbells = 0;
};

class Stream : private Tap {
 public:
  explicit Stream(bool adaptive_routing) : timeline_(1), network_(&timeline_), data_requests_(adaptive_routing ? 2 : 1) {
    for (int from = 0; from < 2; ++from)
      for (int rail = kOobRail; rail < 1; ++rail)
        network_.SetPath({from, rail}, {1 - from, rail}, {.delay = 5'000, .rate_bytes_per_s = 5'000'000'000});
    VerbsRailsOptions options{.adaptive_routing = adaptive_routing};
    options.fabric.reorder = adaptive_routing;
    rails_ = std::make_shared<VerbsRails>(&network_, options);
    for (int host = 0; host < 2; ++host) {
      processes_[host] = std::make_unique<Process>(&network_, static_cast<Tap*>(this), host,
                                                   ProcessOptions{.rails = 1, .keys = true, .chunk_bytes = kBytes},
                                                   [this](Io* io, net::Greet) { return rails_->Make(io); });
      processes_[host]->progress = [this, host] { host == 0 ? Send() : Receive(); };
    }
    processes_[1]->Listen(0);
    for (const auto& process : processes_) process->Wake();
  }
  ~Stream() override { timeline_.Clear(); }

  Cost Run() {
    RunUntil(kWarmUp);
    const Total before = Count();
    RunUntil(kWarmUp + kCounted);
    const Total after = Count();
    const auto per_message = [](uint64_t from, uint64_t to) { return static_cast<double>(to - from) / kCounted; };
    Cost cost;
    cost.requests = per_message(before.sends + before.receives, after.sends + after.receives);
    cost.completions = per_message(before.completions, after.completions);
    cost.control = per_message(before.sends, after.sends) - data_requests_;
    cost.doorbells = per_message(before.doorbells, after.doorbells);
    return cost;
  }
  void Close() {
    for (int host = 0; host < 2; ++host) ports_[host].Close(flows_[host]);
  }

 private:
  struct Total {
    uint64_t sends = 0, receives = 0, completions = 0, doorbells = 0;
  };
  Total Count() const {
    Total total;
    for (int host = 0; host < 2; ++host) {
      const auto& counts = rails_->verbs(host).counts();
      total.sends += counts.sends;
      total.receives += counts.receives;
      total.completions += counts.completions;
      total.doorbells += counts.send_doorbells + counts.receive_doorbells;
    }
    return total;
  }
  void RunUntil(uint64_t received) {
    const Nanos limit = timeline_.now() + kLimit;
    while (received_ < received && timeline_.now() < limit && timeline_.RunNext()) continue;
    ASSERT_GE(received_, received);
  }
  std::byte* At(std::vector<std::byte>* memory, uint64_t message) const { return memory->data() + message % kWindow * kBytes; }
  template <typename Opened>
  std::function<void()> CloseOf(const Opened& flow) {
    return [flow] {
      const net::PeerLock lock(*flow.peer);
      flow.peer->Close(flow.id);
    };
  }
  void Send() {
    if (memory_[0] == nullptr) {
      const Process::SendFlow opened = processes_[0]->Connect(1, 0, 0);
      flows_[0] = ports_[0].Add(opened.peer.get(), opened.id, opened.comm.get(), CloseOf(opened));
      memory_[0] = processes_[0]->Register(out_.data(), out_.size(), false);
    }
    ASSERT_EQ(ports_[0].Error(flows_[0]), "");
    for (const uint64_t done = ports_[0].DoneThrough(flows_[0]); sent_ < done + kWindow; ++sent_) {
      // Its first byte says which it is; the rest is the fabric's to carry.
      *At(&out_, sent_) = static_cast<std::byte>(sent_);
      ASSERT_TRUE(ports_[0].Send(flows_[0], {At(&out_, sent_), memory_[0]}, kBytes));
    }
  }
  void Receive() {
    Process::RecvFlow opened;
    if (memory_[1] == nullptr) {
      if (!processes_[1]->Accept(0, &opened)) return;
      flows_[1] = ports_[1].Add(opened.peer.get(), opened.id, opened.comm.get(), CloseOf(opened));
      memory_[1] = processes_[1]->Register(in_.data(), in_.size(), true);
    }
    ASSERT_EQ(ports_[1].Error(flows_[1]), "");
    for (const uint64_t done = ports_[1].DoneThrough(flows_[1]); received_ < done; ++received_)
      ASSERT_EQ(*At(&in_, received_), static_cast<std::byte>(received_)) << received_;
    for (; taken_ < received_ + kWindow; ++taken_) ASSERT_TRUE(ports_[1].Receive(flows_[1], {At(&in_, taken_), memory_[1]}, kBytes));
  }

  Timeline timeline_;
  Network network_;
  const int data_requests_;
  std::shared_ptr<VerbsRails> rails_;
  net::PeerFlowPort ports_[2];
  net::FlowRef flows_[2] = {};
  std::vector<std::byte> out_ = std::vector<std::byte>(kWindow * kBytes), in_ = out_;
  const net::Memory* memory_[2] = {};
  std::unique_ptr<Process> processes_[2];
  uint64_t sent_ = 0, taken_ = 0, received_ = 0;
};

Cost CostOf(bool adaptive_routing) {
  Stream stream(adaptive_routing);
  const Cost cost = stream.Run();
  stream.Close();
  std::printf("a message of 512 KiB%s: %.3f work requests, %.3f completions, %.3f control messages, %.3f doorbells\n",
              adaptive_routing ? ", adaptive routing" : "", cost.requests, cost.completions, cost.control, cost.doorbells);
  return cost;
}

// NCCL's own InfiniBand transport: 3 work requests and 2 completions, 4 with adaptive routing.
TEST(VerbsWork, AMessageTakesThreeRequestsAndLittleMoreThanOneCompletion) {
  const Cost cost = CostOf(false);
  EXPECT_LE(cost.requests, 3);
  EXPECT_LE(cost.completions, 1.2);
  EXPECT_LE(cost.control, 1.1);
}

TEST(VerbsWork, WithTailRecordsItTakesOneRequestMore) {
  const Cost cost = CostOf(true);
  EXPECT_LE(cost.requests, 4);
  EXPECT_LE(cost.completions, 1.2);
  EXPECT_LE(cost.control, 1.1);
}

}  // namespace
}  // namespace r2cc::sim
