// Messages from one GPU to another over several rails, while devices are lost: the GPU that receives sees all of a message when the job
// hears of it. The production peers over the shipped verbs links, on a fake fabric and a fake GPU that shows what a device wrote after a
// flush by that device.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "netplugin/flow/mutant.h"
#include "netplugin/transport/flow_port.h"
#include "tests/sim/process.h"
#include "tests/sim/verbs_rails.h"

namespace r2cc::sim {
namespace {

constexpr int kRails = 3;
constexpr uint32_t kChunkBytes = 4096, kBytes = 16 * kChunkBytes;
constexpr uint64_t kWindow = 8, kMessages = 200;
constexpr Nanos kLimit = 60 * kNanosPerSecond;

// The bytes of a message, other ones in each.
std::vector<std::byte> Message(uint64_t number) {
  std::vector<std::byte> bytes(kBytes);
  for (uint32_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::byte>(number * 7 + i / kChunkBytes + 1);
  return bytes;
}

class GpuStream : private Tap {
 public:
  explicit GpuStream(uint64_t seed) : timeline_(seed), network_(&timeline_) {
    for (int from = 0; from < 2; ++from)
      for (int rail = kOobRail; rail < kRails; ++rail)
        for (int other = kOobRail; other < kRails; ++other)
          network_.SetPath({from, rail}, {1 - from, other}, {.delay = 5'000, .rate_bytes_per_s = 1'000'000'000});
    VerbsRailsOptions options;
    options.gpu = &gpu_;
    rails_ = std::make_shared<VerbsRails>(&network_, options);
    for (int host = 0; host < 2; ++host) {
      processes_[host] = std::make_unique<Process>(&network_, static_cast<Tap*>(this), host,
                                                   ProcessOptions{.rails = kRails, .keys = true, .chunk_bytes = kChunkBytes},
                                                   [this](Io* io, net::Greet) { return rails_->Make(io); });
      // Before the job moves: time passes while the paths are proved.
      at_[host] = gpu_.Allocate(host, kWindow * kBytes, &error_);
      memory_[host] = processes_[host]->RegisterGpu(at_[host], kWindow * kBytes, host);
      EXPECT_NE(memory_[host], nullptr);
    }
    for (int host = 0; host < 2; ++host) processes_[host]->progress = [this, host] { host == 0 ? Send() : Receive(); };
    processes_[1]->Listen(0);
    for (const auto& process : processes_) process->Wake();
  }
  ~GpuStream() override {
    for (int host = 0; host < 2; ++host)
      if (opened_[host]) ports_[host].Close(flows_[host]);
    timeline_.Clear();
    // Its peer belongs to the process.
    sender_ = {};
  }

  // One rail is down, so that chunks are dealt out to the others.
  void Deal() {
    for (const auto& process : processes_) process->RailState(kRails - 1, false);
  }
  void RunUntil(uint64_t received) {
    const Nanos limit = timeline_.now() + kLimit;
    while (received_ < received && timeline_.now() < limit && timeline_.RunNext()) continue;
    ASSERT_GE(received_, received);
  }
  void LoseDevice(int rail, bool lost) {
    rails_->Device({1, rail}, lost);
    processes_[1]->Device(rail, lost);
  }
  uint64_t wrong() const { return wrong_; }
  uint64_t sent_bytes(int rail) const { return processes_[0]->sent_bytes(rail); }

 private:
  template <typename Opened>
  std::function<void()> CloseOf(const Opened& flow) {
    return [flow] {
      const net::PeerLock lock(*flow.peer);
      flow.peer->Close(flow.id);
    };
  }
  std::byte* At(int host, uint64_t message) const { return at_[host] + message % kWindow * kBytes; }
  void Send() {
    if (!opened_[0]) {
      sender_ = processes_[0]->Connect(1, 0, 0);
      flows_[0] = ports_[0].Add(sender_.peer.get(), sender_.id, sender_.comm.get(), CloseOf(sender_));
      opened_[0] = true;
    }
    // As NCCL does: until then nobody knows how the rails are joined.
    if (sender_.comm->state.load() == net::Comm::State::kOpening) return;
    ASSERT_EQ(ports_[0].Error(flows_[0]), "");
    for (const uint64_t done = ports_[0].DoneThrough(flows_[0]); sent_ < done + kWindow; ++sent_) {
      const auto bytes = Message(sent_);
      ASSERT_TRUE(gpu_.Copy(0, At(0, sent_), bytes.data(), kBytes, &error_));
      ASSERT_TRUE(ports_[0].Send(flows_[0], {At(0, sent_), memory_[0]}, kBytes));
    }
  }
  void Receive() {
    Process::RecvFlow opened;
    if (!opened_[1]) {
      if (!processes_[1]->Accept(0, &opened)) return;
      flows_[1] = ports_[1].Add(opened.peer.get(), opened.id, opened.comm.get(), CloseOf(opened));
      opened_[1] = true;
    }
    ASSERT_EQ(ports_[1].Error(flows_[1]), "");
    for (const uint64_t done = ports_[1].DoneThrough(flows_[1]); received_ < done; ++received_) {
      std::vector<std::byte> seen(kBytes);
      ASSERT_TRUE(gpu_.Copy(1, seen.data(), At(1, received_), kBytes, &error_));
      wrong_ += seen == Message(received_) ? 0 : 1;
    }
    for (; taken_ < received_ + kWindow; ++taken_) ASSERT_TRUE(ports_[1].Receive(flows_[1], {At(1, taken_), memory_[1]}, kBytes));
  }

  Timeline timeline_;
  Network network_;
  gpu::FakeGpu gpu_{2};
  std::shared_ptr<VerbsRails> rails_;
  net::PeerFlowPort ports_[2];
  net::FlowRef flows_[2] = {};
  bool opened_[2] = {};
  Process::SendFlow sender_;
  std::byte* at_[2] = {};
  const net::Memory* memory_[2] = {};
  std::unique_ptr<Process> processes_[2];
  std::string error_;
  uint64_t sent_ = 0, taken_ = 0, received_ = 0, wrong_ = 0;
};

TEST(GpuMemory, AGpuSeesWholeMessages) {
  GpuStream stream(1);
  stream.RunUntil(kMessages);
  EXPECT_EQ(stream.wrong(), 0u);
}

TEST(GpuMemory, AlsoOfWhichEachDeviceBroughtAPart) {
  GpuStream stream(1);
  stream.RunUntil(1);
  stream.Deal();
  stream.RunUntil(kMessages);
  EXPECT_EQ(stream.wrong(), 0u);
  for (int rail = 0; rail < kRails - 1; ++rail) EXPECT_GT(stream.sent_bytes(rail), kMessages * kBytes / 8) << rail;
}

// What its last writes brought, and nobody flushed, comes again by another.
TEST(GpuMemory, AlsoWhenADeviceIsLostAndComesBack) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    GpuStream stream(seed);
    stream.RunUntil(1);
    stream.Deal();
    stream.RunUntil(20 + seed);
    stream.LoseDevice(1, true);
    stream.RunUntil(60);
    stream.LoseDevice(1, false);
    stream.RunUntil(kMessages);
    EXPECT_EQ(stream.wrong(), 0u) << "seed " << seed;
  }
}

TEST(GpuMemory, ADeviceThatIsNotFlushedIsFoundOut) {
  net::mutant = net::Mutant::kFlushLeftOut;
  uint64_t wrong = 0;
  {
    GpuStream stream(1);
    stream.RunUntil(1);
    stream.Deal();
    stream.RunUntil(kMessages);
    wrong = stream.wrong();
  }
  net::mutant = net::Mutant::kNothing;
  EXPECT_GT(wrong, 0u);
}

}  // namespace
}  // namespace r2cc::sim
