// Two processes over the shipped verbs links, and a flow for each rail that always has messages on the way: what becomes of them while
// other things happen. The production peers, in virtual time.
#ifndef R2CC_TESTS_SIM_BUSY_FLOWS_H_
#define R2CC_TESTS_SIM_BUSY_FLOWS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/sim/process.h"
#include "tests/sim/verbs_rails.h"

namespace r2cc::sim {

class BusyFlows : private Tap {
 public:
  static constexpr uint32_t kBytes = 64 * 1024;
  static constexpr uint64_t kWindow = 16;
  static constexpr uint64_t kListener = 1'000'000;  // the first rail's flow
  static constexpr uint64_t kRailBytesPerS = 100'000'000;

  explicit BusyFlows(int rails) : flows_(static_cast<size_t>(rails)), timeline_(1), network_(&timeline_) {
    for (int from = 0; from < 2; ++from)
      for (int rail = kOobRail; rail < rails; ++rail)
        network_.SetPath({from, rail}, {1 - from, rail}, {.delay = 5'000, .rate_bytes_per_s = kRailBytesPerS});
    rails_ = std::make_shared<VerbsRails>(&network_, VerbsRailsOptions{});
    for (int host = 0; host < 2; ++host) {
      processes_[host] = std::make_unique<Process>(&network_, static_cast<Tap*>(this), host,
                                                   ProcessOptions{.rails = rails, .keys = true, .chunk_bytes = kBytes},
                                                   [this](Io* io, net::Greet) { return rails_->Make(io); });
      processes_[host]->progress = [this, host] { host == 0 ? Send() : Receive(); };
    }
    for (size_t rail = 0; rail < flows_.size(); ++rail) processes_[1]->Listen(kListener + rail);
  }
  // Devices write memory of the job's until their links end, and those end with the last that holds a peer.
  ~BusyFlows() override {
    timeline_.Clear();
    for (Flow& flow : flows_) {
      flow.sender = {};
      flow.receiver = {};
    }
    for (auto& process : processes_) process.reset();
  }

  void Begin() {
    for (const auto& process : processes_) process->Wake();
  }
  void RunFor(Nanos time) {
    const Nanos end = timeline_.now() + time;
    while (timeline_.now() < end && timeline_.RunNext()) continue;
  }
  VerbsRails& rails() { return *rails_; }
  Process& process(int host) { return *processes_[host]; }
  // Messages of all flows.
  uint64_t received() const {
    uint64_t messages = 0;
    for (const Flow& flow : flows_) messages += flow.received;
    return messages;
  }
  // Of the flow that is at home on the rail.
  uint64_t received(int rail) const { return flows_[static_cast<size_t>(rail)].received; }
  // What has left by the rail.
  uint64_t sent_bytes(int rail) const { return processes_[0]->sent_bytes(rail); }
  // The longest time between two messages of a flow since the last call.
  Nanos TakeLongestStall() { return std::exchange(longest_stall_, 0); }
  int fences() const { return fences_; }
  // Of all links, as the receiver has them.
  std::vector<net::Incarnation> Incarnations() const {
    std::vector<net::Incarnation> all;
    const auto& session = flows_[0].receiver.peer->session();
    for (size_t link = 0; link < flows_.size(); ++link) all.push_back(session.links().incarnation(static_cast<net::LinkId>(link)));
    return all;
  }

 protected:
  // Once a turn of each process.
  virtual void SendMore() {}
  virtual void ReceiveMore() {}
  Nanos now() const { return timeline_.now(); }

 private:
  void Recorded(int, int, int, const net::SessionAction& action) override {
    fences_ += action.kind == net::SessionAction::Kind::kLinkFenced;
  }

  void Send() {
    for (size_t rail = 0; rail < flows_.size(); ++rail) {
      Flow& flow = flows_[rail];
      if (flow.out_memory == nullptr) {
        flow.sender = processes_[0]->Connect(1, kListener + rail, static_cast<int>(rail));
        flow.out_memory = processes_[0]->Register(flow.out.data(), flow.out.size(), false);
      }
      flow.sender.peer->Progress(flow.sender.id);
      EXPECT_EQ(flow.sender.comm->state.load() == net::Comm::State::kFailed ? flow.sender.comm->error() : "", "");
      if (flow.sender.comm->state.load() != net::Comm::State::kOpen) continue;
      for (const uint64_t done = flow.sender.comm->done_through.load(); flow.sent < done + kWindow; ++flow.sent)
        flow.sender.peer->Submit(flow.sender.id, {flow.out.data() + flow.sent % kWindow * kBytes, flow.out_memory}, kBytes);
    }
    SendMore();
  }
  void Receive() {
    for (size_t rail = 0; rail < flows_.size(); ++rail) {
      Flow& flow = flows_[rail];
      if (flow.in_memory == nullptr) {
        if (!processes_[1]->Accept(kListener + rail, &flow.receiver)) continue;
        flow.in_memory = processes_[1]->Register(flow.in.data(), flow.in.size(), false);
        flow.progressed = now();
      }
      flow.receiver.peer->Progress(flow.receiver.id);
      if (const uint64_t done = flow.receiver.comm->done_through.load(); done > flow.received) {
        flow.received = done;
        longest_stall_ = std::max(longest_stall_, now() - std::exchange(flow.progressed, now()));
      }
      for (; flow.taken < flow.received + kWindow; ++flow.taken)
        flow.receiver.peer->Submit(flow.receiver.id, {flow.in.data() + flow.taken % kWindow * kBytes, flow.in_memory}, kBytes);
    }
    ReceiveMore();
  }

  struct Flow {
    Process::SendFlow sender;
    Process::RecvFlow receiver;
    std::vector<std::byte> out = std::vector<std::byte>(kWindow * kBytes), in = out;
    const net::Memory *out_memory = nullptr, *in_memory = nullptr;
    uint64_t sent = 0, taken = 0, received = 0;
    Nanos progressed = 0;
  };
  std::vector<Flow> flows_;  // by rail
  Timeline timeline_;
  Network network_;
  std::shared_ptr<VerbsRails> rails_;
  std::unique_ptr<Process> processes_[2];
  Nanos longest_stall_ = 0;
  int fences_ = 0;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_BUSY_FLOWS_H_
