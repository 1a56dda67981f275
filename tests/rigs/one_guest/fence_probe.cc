// Do late writes land after the transport's fence? Node a writes one block without pause. Node b fences in mid-stream, paints the block and
// looks for bytes that are not the paint. Without a fence there must be some, or the probe proves nothing. On the first cable of R2CC_HW,
// in a guest as on real NICs.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/core/verbs/libibverbs.h"
#include "netplugin/transport/verbs/device.h"
#include "netplugin/transport/verbs/fence.h"
#include "tests/rigs/hardware/hardware.h"
#include "tests/rigs/one_guest/verbs_end.h"

namespace r2cc::rig {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using verbs::Completion;
using verbs::Status;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kBlockBytes = 65536;  // 64 packets: a fence mostly falls into the middle of one
constexpr int kInFlight = 8;
constexpr uint8_t kPaint = 0xee;
constexpr uint8_t kData = 0x11;
// Late bytes were seen up to 50 ms after a fence that did not hold, most within 40.
constexpr milliseconds kWatch(40);
// So soon does node a give up: within the watch it tries again as long as it may.
constexpr PairOptions kQuick{.timeout = 12, .retry_cnt = 1};

struct Outcome {
  int rounds = 0;    // that count
  int unproved = 0;  // besides: the fence said that it does not hold
  int late_rounds = 0;
  size_t late_bytes_worst = 0;
  double fence_ms_sum = 0;
  double fence_ms_worst = 0;
};

double Milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

// The transport's own. Its time-out of the drain is short for a machine that others use too: such a round proves nothing and says so.
bool FenceOf(verbs::Verbs* verbs, const verbs::DeviceInfo& device, VerbsEnd* end) {
  net::verbs::Fence fence(verbs,
                          {.queue_pair = end->pair(),
                           .completions = end->receive_completions(),
                           .own_receive = end->receives_posted() + 1,
                           .reset_waits = net::verbs::ResetWaits(device.driver)},
                          {.gone = [] { return false; }, .answers = [] { return true; }, .second_line = [] { return EOPNOTSUPP; }});
  while (fence.result() == net::verbs::Fence::Result::kRunning && fence.Step(Clock::now().time_since_epoch().count())) sched_yield();
  if (fence.destroyed()) end->PairIsDestroyed();
  return fence.result() == net::verbs::Fence::Result::kProved;
}

// Node a: keeps kInFlight writes posted until they fail; then it waits for the word to stop.
void WriteUntil(const std::atomic<bool>* stop, VerbsEnd* end) {
  int in_flight = 0;
  bool failed = false;
  while (!*stop) {
    while (!failed && in_flight < kInFlight) {
      failed = end->Write(kBlockBytes, true) != 0;
      in_flight += failed ? 0 : 1;
    }
    for (const Completion& completion : end->PollSends()) {
      failed = failed || completion.status != Status::kSuccess;
      --in_flight;
    }
    sched_yield();  // there is one processor
  }
}

// Node b: takes what comes for `duration`, so that receives never run out.
void ReceiveFor(Clock::duration duration, VerbsEnd* end) {
  for (const Clock::time_point until = Clock::now() + duration; Clock::now() < until; sched_yield())
    for (const Completion& completion : end->PollReceives())
      if (completion.status == Status::kSuccess) end->PostReceive();
}

// The most foreign bytes that were seen at a time.
size_t Watch(const std::vector<uint8_t>& memory) {
  size_t most = 0;
  for (const Clock::time_point until = Clock::now() + kWatch; Clock::now() < until; sched_yield())
    // The device writes what the compiler does not see.
    most = std::max(most, static_cast<size_t>(std::count_if(memory.begin(), memory.end(), [](const uint8_t& byte) {
                      return *const_cast<const volatile uint8_t*>(&byte) != kPaint;
                    })));
  return most;
}

using FenceFunction = std::function<bool(verbs::Verbs*, const verbs::DeviceInfo&, VerbsEnd*)>;

// `fence`: returns whether the round counts. At most as many others are put up with.
Outcome Probe(const HardwareCable& cable, int rounds, const FenceFunction& fence) {
  verbs::Libibverbs verbs;
  VerbsEnd a(&verbs, cable.ends[0].device, kBlockBytes);
  VerbsEnd b(&verbs, cable.ends[1].device, kBlockBytes);
  a.memory().assign(kBlockBytes, kData);
  std::mt19937 random(std::random_device{}());
  Outcome outcome;
  std::vector<verbs::DeviceInfo> devices;
  EXPECT_EQ(verbs.Devices(&devices), 0);
  const auto device = std::find_if(devices.begin(), devices.end(), [&](const auto& entry) { return entry.name == cable.ends[1].device; });
  while (outcome.rounds < rounds && outcome.unproved < rounds) {
    VerbsEnd::Connect(&a, &b, kQuick);
    for (uint32_t i = 0; i < VerbsEnd::kRequestsMax; ++i) b.PostReceive();
    std::atomic<bool> stop = false;
    std::thread writer([&] { WriteUntil(&stop, &a); });
    ReceiveFor(microseconds(std::uniform_int_distribution(8000, 16000)(random)), &b);
    const Clock::time_point began = Clock::now();
    const bool counts = fence(&verbs, *device, &b);
    const double fence_ms = Milliseconds(Clock::now() - began);
    std::memset(b.memory().data(), kPaint, kBlockBytes);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const size_t late = Watch(b.memory());
    stop = true;
    writer.join();
    if (!counts) {
      ++outcome.unproved;
      continue;
    }
    ++outcome.rounds;
    outcome.late_rounds += late > 0 ? 1 : 0;
    outcome.late_bytes_worst = std::max(outcome.late_bytes_worst, late);
    outcome.fence_ms_sum += fence_ms;
    outcome.fence_ms_worst = std::max(outcome.fence_ms_worst, fence_ms);
  }
  return outcome;
}

void Print(const char* what, const Outcome& outcome) {
  std::printf("%s: %d of %d rounds with late bytes, at most %zu; %d more unproved; fence %.2f ms on average, %.1f at most\n", what,
              outcome.late_rounds, outcome.rounds, outcome.late_bytes_worst, outcome.unproved, outcome.fence_ms_sum / outcome.rounds,
              outcome.fence_ms_worst);
}

// For a longer run by hand.
int RoundsOf(const char* variable, int otherwise) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? std::atoi(value) : otherwise;
}

class FenceProbe : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<HardwareCable> cables;
    std::string error;
    if (!FindHardware(std::getenv("R2CC_HW"), "/sys", &cables, &error)) FAIL() << error;
    if (cables.empty()) GTEST_SKIP() << kNoHardware;
    cable_ = cables[0];
  }
  HardwareCable cable_;
};

TEST_F(FenceProbe, WithoutAFenceMoreThanHalfOfTheRoundsShowLateBytes) {
  const Outcome outcome = Probe(cable_, 50, [](auto...) { return true; });
  Print("no fence", outcome);
  EXPECT_GT(outcome.late_rounds, 25);
}

TEST_F(FenceProbe, WithTheFenceNoRoundDoes) {
  const int rounds = RoundsOf("R2CC_FENCE_ROUNDS", 100);
  const Outcome outcome = Probe(cable_, rounds, FenceOf);
  Print("fence", outcome);
  EXPECT_EQ(outcome.rounds, rounds);
  EXPECT_GT(outcome.rounds, 0);
  EXPECT_EQ(outcome.late_rounds, 0);
}

}  // namespace
}  // namespace r2cc::rig
