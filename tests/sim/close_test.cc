// Flows that are closed with receives posted and nothing on the way, as every communicator of CollNet and each aborted one closes them,
// beside a flow of another communicator to the same process: its links stay, and it does not slow down. The production peers over the
// shipped verbs links, in virtual time.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/sim/process.h"
#include "tests/sim/verbs_rails.h"

namespace r2cc::sim {
namespace {

constexpr uint32_t kBytes = 128 * 1024;
constexpr uint64_t kWindow = 8;
constexpr int kCloses = 100;
constexpr Nanos kBetween = 10 * kNanosPerMs;
constexpr uint64_t kBusy = 0;  // the busy flow's listener; those of the others follow

class Communicators : private Tap {
 public:
  explicit Communicators(int rails, bool sends) : timeline_(1), network_(&timeline_), sends_(sends) {
    for (int from = 0; from < 2; ++from)
      for (int rail = kOobRail; rail < rails; ++rail)
        network_.SetPath({from, rail}, {1 - from, rail}, {.delay = 5'000, .rate_bytes_per_s = 1'000'000'000});
    rails_ = std::make_shared<VerbsRails>(&network_, VerbsRailsOptions{});
    for (int host = 0; host < 2; ++host) {
      processes_[host] = std::make_unique<Process>(&network_, static_cast<Tap*>(this), host,
                                                   ProcessOptions{.rails = rails, .keys = true, .chunk_bytes = kBytes},
                                                   [this](Io* io, net::Greet) { return rails_->Make(io); });
      processes_[host]->progress = [this, host] { host == 0 ? Send() : Receive(); };
    }
    for (uint64_t listener = kBusy; listener <= kCloses; ++listener) processes_[1]->Listen(listener);
    for (const auto& process : processes_) process->Wake();
  }
  // Devices write memory of the job's until their links end, and those end with the last that holds a peer.
  ~Communicators() override {
    timeline_.Clear();
    busy_send_ = {};
    busy_receive_ = {};
    for (const auto& one : idle_) {
      one->sender = {};
      one->receiver = {};
    }
    for (auto& process : processes_) process.reset();
  }

  void RunFor(Nanos time) {
    const Nanos end = timeline_.now() + time;
    while (timeline_.now() < end && timeline_.RunNext()) continue;
  }
  uint64_t received() const { return received_; }
  int closed() const {
    return static_cast<int>(std::count_if(idle_.begin(), idle_.end(), [](const auto& one) { return one->closed; }));
  }
  void StartClosing() { closing_ = true; }
  int fences = 0;

 private:
  struct Idle {
    Process::SendFlow sender;
    Process::RecvFlow receiver;
    bool connected = false, posted = false, closing = false, closed = false;
    const net::Memory *out_memory = nullptr, *in_memory = nullptr;
    std::vector<std::byte> out = std::vector<std::byte>(kBytes), in = std::vector<std::byte>(kBytes);
  };
  void Recorded(int, int, int, const net::Action& action) override { fences += action.kind == net::Action::Kind::kLinkFenced; }

  void Send() {
    if (out_memory_ == nullptr) {
      busy_send_ = processes_[0]->Connect(1, kBusy, 0);
      out_memory_ = processes_[0]->Register(out_.data(), out_.size(), false);
      for (int i = 0; i < kCloses; ++i) idle_.push_back(std::make_unique<Idle>());
    }
    busy_send_.peer->Progress(busy_send_.id);
    EXPECT_EQ(busy_send_.comm->state.load() == net::Comm::State::kFailed ? busy_send_.comm->error() : "", "");
    if (busy_send_.comm->state.load() == net::Comm::State::kOpen)
      for (const uint64_t done = busy_send_.comm->done_through.load(); sent_ < done + kWindow; ++sent_)
        busy_send_.peer->Submit(busy_send_.id, {out_.data() + sent_ % kWindow * kBytes, out_memory_}, kBytes);
    for (size_t i = 0; i < idle_.size(); ++i) {
      Idle& one = *idle_[i];
      if (!std::exchange(one.connected, true)) one.sender = processes_[0]->Connect(1, i + 1, 0);
      // Aborted with a message on its way.
      if (!sends_ || !one.posted || one.out_memory != nullptr || one.closing) continue;
      one.out_memory = processes_[0]->Register(one.out.data(), kBytes, false);
      one.sender.peer->Submit(one.sender.id, {one.out.data(), one.out_memory}, kBytes);
    }
  }
  void Receive() {
    if (in_memory_ == nullptr) {
      if (!processes_[1]->Accept(kBusy, &busy_receive_)) return;
      in_memory_ = processes_[1]->Register(in_.data(), in_.size(), true);
    }
    busy_receive_.peer->Progress(busy_receive_.id);
    received_ = busy_receive_.comm->done_through.load();
    for (; taken_ < received_ + kWindow; ++taken_)
      busy_receive_.peer->Submit(busy_receive_.id, {in_.data() + taken_ % kWindow * kBytes, in_memory_}, kBytes);
    for (size_t i = 0; i < idle_.size(); ++i) {
      Idle& one = *idle_[i];
      if (!one.posted && processes_[1]->Accept(i + 1, &one.receiver)) {
        one.posted = true;
        one.in_memory = processes_[1]->Register(one.in.data(), kBytes, true);
        // More of them than anybody sends.
        for (int post = 0; post < 2; ++post) one.receiver.peer->Submit(one.receiver.id, {one.in.data(), one.in_memory}, kBytes);
      }
      const Nanos now = timeline_.now();
      if (closing_ && one.posted && !one.closing && now - last_close_ >= kBetween) {
        last_close_ = now;
        one.closing = true;
        const auto lock = one.receiver.peer->Lock();
        one.receiver.peer->Close(one.receiver.id);
      }
      if (one.closing && !one.closed && !one.receiver.peer->Holds(one.receiver.id)) {
        one.closed = true;
        processes_[1]->Unregister(one.in_memory);
      }
    }
  }

  Timeline timeline_;
  Network network_;
  const bool sends_;
  std::shared_ptr<VerbsRails> rails_;
  Process::SendFlow busy_send_;
  Process::RecvFlow busy_receive_;
  std::vector<std::byte> out_ = std::vector<std::byte>(kWindow * kBytes), in_ = out_;
  const net::Memory *out_memory_ = nullptr, *in_memory_ = nullptr;
  std::vector<std::unique_ptr<Idle>> idle_;
  std::unique_ptr<Process> processes_[2];
  uint64_t sent_ = 0, taken_ = 0, received_ = 0;
  bool closing_ = false;
  Nanos last_close_ = 0;
};

TEST(Closes, LeaveTheLinksOfOtherFlowsAlone) {
  for (const int rails : {1, 2})
    for (const bool sends : {false, true}) {
      SCOPED_TRACE(std::to_string(rails) + (sends ? " rails, messages on their way" : " rails"));
      Communicators world(rails, sends);
      world.RunFor(500 * kNanosPerMs);
      const uint64_t begin = world.received();
      world.RunFor(kNanosPerSecond);
      const uint64_t alone = world.received() - begin;
      ASSERT_GT(alone, 1000u);
      world.StartClosing();
      world.RunFor(kNanosPerSecond);
      const uint64_t beside = world.received() - begin - alone;
      world.RunFor(500 * kNanosPerMs);
      EXPECT_EQ(world.closed(), kCloses);
      EXPECT_EQ(world.fences, 0);
      EXPECT_GE(static_cast<double>(beside), 0.95 * static_cast<double>(alone));
    }
}

}  // namespace
}  // namespace r2cc::sim
