// An AllReduce of the plugin's own among GPUs, while a NIC is lost: contributions land in a GPU's memory and are added up there, which sees
// what a device wrote after a flush by that device. The production driver, peers and verbs links, on a fake fabric and a fake GPU.

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/collnet/driver.h"
#include "netplugin/flow/mutant.h"
#include "netplugin/transport/collective/device_reducer.h"
#include "netplugin/transport/collective/device_staging.h"
#include "netplugin/transport/collective/fake_reduction_stream.h"
#include "tests/sim/process.h"
#include "tests/sim/sim_flows.h"
#include "tests/sim/verbs_rails.h"

namespace r2cc::sim {
namespace {

using abi::DataType;
using abi::RedOp;

constexpr int kRails = 3;
constexpr uint32_t kMembers = 3, kChunkBytes = 4096;
constexpr uint64_t kRailBytesPerSecond = 1'000'000'000;
constexpr size_t kCount = 24 * 1024, kBytes = kCount * sizeof(float);
constexpr collnet::Slot kSlots = 2;
constexpr uint64_t kWindow = 4, kOperations = 60;
constexpr Nanos kLimit = 60 * kNanosPerSecond;

// Floats whose sum depends on the order and on each rounding.
std::vector<float> Contribution(uint32_t member, uint64_t operation) {
  Random random(operation * kMembers + member + 1);
  std::vector<float> floats(kCount);
  for (float& each : floats) {
    const auto bits = static_cast<uint32_t>(random.Next());
    each = std::bit_cast<float>((bits & 0x807fffffu) | ((120 + (bits >> 23) % 16) << 23));
  }
  return floats;
}
std::vector<float> Sum(uint64_t operation) {
  std::vector<std::vector<float>> all;
  std::vector<const std::byte*> from;
  for (uint32_t member = 0; member < kMembers; ++member) {
    all.push_back(Contribution(member, operation));
    from.push_back(reinterpret_cast<const std::byte*>(all.back().data()));
  }
  std::vector<float> sum(kCount);
  collnet::ReduceWith(collnet::InstructionSet::kPortable, DataType::kFloat32, RedOp::kSum, from, reinterpret_cast<std::byte*>(sum.data()),
                      kCount);
  return sum;
}

class GpuGroup : private Tap {
 public:
  // The last member has host memory, if it is to.
  explicit GpuGroup(uint64_t seed, bool mixed = false) : timeline_(seed), network_(&timeline_) {
    for (int from = 0; from < static_cast<int>(kMembers); ++from)
      for (int to = 0; to < static_cast<int>(kMembers); ++to)
        for (int rail = kOobRail; rail < kRails && from != to; ++rail)
          for (int other = kOobRail; other < kRails; ++other)
            network_.SetPath({from, rail}, {to, other}, {.delay = 5'000, .rate_bytes_per_s = kRailBytesPerSecond});
    VerbsRailsOptions options;
    options.gpu = &gpu_;
    rails_ = std::make_shared<VerbsRails>(&network_, options);
    for (uint32_t number = 0; number < kMembers; ++number) {
      Member& member = *members_.emplace_back(std::make_unique<Member>(&gpu_));
      member.process = std::make_unique<Process>(&network_, static_cast<Tap*>(this), static_cast<int>(number),
                                                 ProcessOptions{.rails = kRails, .keys = true, .chunk_bytes = kChunkBytes},
                                                 [this](Io* io, net::Greet) { return rails_->Make(io); });
      UseMemory(number, mixed && number + 1 == kMembers);
      member.process->Listen(0);
    }
    for (uint32_t number = 0; number < kMembers; ++number) members_[number]->process->progress = [this, number] { Progress(number); };
    for (const auto& member : members_) member->process->Wake();
  }
  ~GpuGroup() override {
    for (const auto& member : members_) member->driver.reset();
    for (const auto& member : members_) member->staging.reset();
    timeline_.Clear();
  }

  void RunUntil(uint64_t operations) {
    const Nanos limit = timeline_.now() + kLimit;
    const auto done = [&] {
      return std::all_of(members_.begin(), members_.end(), [&](const auto& member) { return member->done >= operations; });
    };
    while (!done() && timeline_.now() < limit && timeline_.RunNext()) continue;
    ASSERT_TRUE(done());
  }
  void LoseDevice(uint32_t member, int rail, bool lost) {
    rails_->Device({static_cast<int>(member), rail}, lost);
    members_[member]->process->Device(rail, lost);
    members_[member]->rails = lost ? kRails - 1 : kRails;
  }
  uint64_t wrong() const { return wrong_; }
  uint64_t added_up_on_gpu(uint32_t member) const { return members_[member]->stream.done(); }
  const collnet::Stamp& plan(uint32_t member) const { return *members_[member]->driver->newest_plan(); }

 private:
  struct Member {
    explicit Member(gpu::FakeGpu* gpu) : stream(gpu), reducer(&host_reducer, gpu) {}
    std::unique_ptr<Process> process;
    net::FakeReductionStream stream;
    collnet::CallersReducer host_reducer;
    net::DeviceReducer reducer;
    std::unique_ptr<net::DeviceStaging> staging;
    std::unique_ptr<net::BouncePool> bounce;
    std::unique_ptr<SimFlows> flows;
    std::unique_ptr<collnet::Driver> driver;
    std::vector<std::byte> host;
    std::byte* at = nullptr;  // a contribution and a result for each operation of the window
    const net::Memory* memory = nullptr;
    int rails = kRails;
    uint64_t called = 0, done = 0;
  };

  // Before the job moves: time passes while the paths are proved.
  void UseMemory(uint32_t number, bool host) {
    Member& member = *members_[number];
    member.staging = std::make_unique<net::DeviceStaging>(&gpu_, &member.process->memory(), kSlots);
    if (host) {
      member.host.resize(2 * kWindow * kBytes);
      member.at = member.host.data();
      return;
    }
    const int gpu = static_cast<int>(number);
    std::string error;
    member.at = gpu_.Allocate(gpu, 2 * kWindow * kBytes, &error);
    member.memory = member.process->RegisterGpu(member.at, 2 * kWindow * kBytes, gpu);
    ASSERT_NE(member.memory, nullptr);
    ASSERT_TRUE(member.staging->Reserve(*member.memory, &error)) << error;
    member.reducer.SetStream(gpu, &member.stream);
  }
  net::Buffer At(const Member& member, uint64_t operation, bool result) const {
    return {member.at + (operation % kWindow * 2 + (result ? 1 : 0)) * kBytes, member.memory};
  }
  void Copy(void* to, const void* from) {
    std::string error;
    ASSERT_TRUE(gpu_.Copy(0, to, from, kBytes, &error)) << error;
  }
  void Progress(uint32_t number) {
    Member& member = *members_[number];
    if (testing::Test::HasFatalFailure()) return;
    if (member.driver == nullptr) {
      member.bounce = std::make_unique<net::BouncePool>(&member.process->memory(), &gpu_);
      member.flows = std::make_unique<SimFlows>(member.process.get(), kRails, member.bounce.get());
      member.driver = std::make_unique<collnet::Driver>(
          collnet::Driver::Options{.group = {.members = kMembers, .member = number, .slots = kSlots}, .number = 1},
          [](const std::vector<uint64_t>& bytes_per_s, const std::vector<bool>& reach_all) {
            return collnet::PlanFor(bytes_per_s, 16 * 1024, reach_all);
          },
          [](const collnet::PlanSpec& plan, uint64_t bytes) -> std::shared_ptr<const plan::Schedule> {
            return collnet::MakeSchedule(plan, kMembers, bytes);
          },
          collnet::Driver::Means{member.flows.get(), &member.reducer, member.staging.get()});
    }
    collnet::Driver& driver = *member.driver;
    driver.SetCapacity(static_cast<uint64_t>(member.rails) * kRailBytesPerSecond);
    driver.Poll(timeline_.now());
    ASSERT_EQ(driver.error(), "");
    for (; driver.Done(member.done); ++member.done) {
      std::vector<float> result(kCount);
      Copy(result.data(), At(member, member.done, true).data);
      const std::vector<float> want = Sum(member.done);
      wrong_ += std::memcmp(result.data(), want.data(), kBytes) == 0 ? 0 : 1;
    }
    for (; driver.connected() && member.called < member.done + kWindow && member.called < kOperations; ++member.called) {
      const std::vector<float> floats = Contribution(number, member.called);
      Copy(At(member, member.called, false).data, floats.data());
      ASSERT_TRUE(driver
                      .Call({At(member, member.called, false), At(member, member.called, true), kCount, DataType::kFloat32, RedOp::kSum},
                            timeline_.now())
                      .has_value());
    }
    // As NCCL polls.
    if (member.done < kOperations) member.process->Wake();
  }

  Timeline timeline_;
  Network network_;
  gpu::FakeGpu gpu_{kMembers};
  std::shared_ptr<VerbsRails> rails_;
  std::vector<std::unique_ptr<Member>> members_;
  uint64_t wrong_ = 0;
};

TEST(GpuGroup, AddsUpInTheMemoryOfGpus) {
  GpuGroup group(1);
  group.RunUntil(kOperations);
  EXPECT_EQ(group.wrong(), 0u);
  for (uint32_t member = 0; member < kMembers; ++member) EXPECT_GE(group.added_up_on_gpu(member), kOperations) << member;
}

TEST(GpuGroup, AlsoWhileANicIsLost) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    GpuGroup group(seed);
    group.RunUntil(5 + seed);
    EXPECT_FALSE(collnet::IsUneven(group.plan(1).plan));
    group.LoseDevice(1, static_cast<int>(seed) % kRails, true);
    group.RunUntil(40);
    EXPECT_TRUE(collnet::IsUneven(group.plan(1).plan)) << "the others do more";
    group.LoseDevice(1, static_cast<int>(seed) % kRails, false);
    group.RunUntil(kOperations);
    EXPECT_EQ(group.wrong(), 0u) << "seed " << seed;
    for (uint32_t member = 0; member < kMembers; ++member) EXPECT_GE(group.added_up_on_gpu(member), kOperations / 2) << member;
  }
}

// Where each member's memory is is its own affair: the bits are the same.
TEST(GpuGroup, AlsoWithAMemberThatHasHostMemory) {
  GpuGroup group(1, true);
  group.RunUntil(10);
  group.LoseDevice(1, 0, true);
  group.RunUntil(kOperations);
  EXPECT_EQ(group.wrong(), 0u);
  EXPECT_GE(group.added_up_on_gpu(0), kOperations);
  EXPECT_EQ(group.added_up_on_gpu(kMembers - 1), 0u);
}

TEST(GpuGroup, AddingUpBeforeTheFlushIsFoundOut) {
  net::mutant = net::Mutant::kFlushLeftOut;
  uint64_t wrong = 0;
  {
    GpuGroup group(1);
    group.RunUntil(5);
    // From now on several devices carry a message.
    group.LoseDevice(1, 0, true);
    group.RunUntil(kOperations);
    wrong = group.wrong();
  }
  net::mutant = net::Mutant::kNothing;
  EXPECT_GT(wrong, 0u);
}

}  // namespace
}  // namespace r2cc::sim
