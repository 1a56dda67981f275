#include "nccl/profiler/profiler.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace r2cc::profiler {
namespace {

constexpr int32_t kPid = 42;

class ProfilerTest : public testing::Test {
 protected:
  void* Open(uint64_t id) {
    void* context = nullptr;
    int mask = -1;
    profiler_.Open({.id = id, .name = "tp0", .rank = 3, .ranks = 8}, true, &context, &mask);
    EXPECT_EQ(mask, 14);
    EXPECT_NE(context, nullptr);
    return context;
  }
  void* Start(void* context, const Event& event) {
    void* handle = nullptr;
    profiler_.Start(context, &handle, event);
    EXPECT_NE(handle, nullptr) << "NCCL would leave out the children of type " << event.type;
    return handle;
  }
  void* Part(void* context, void* parent, int32_t pid = kPid) {
    return Start(context, {.type = abi::kProfileProxyOp, .parent = parent, .pid = pid});
  }
  size_t HeldOperations() { return profiler_.HeldOperations(0, clock_.Now() - 10, clock_.Now(), held_); }

  FakeClock clock_;
  Profiler profiler_{&clock_, kPid, 1};
  std::array<abi::HeldOperationV1, 4> held_{};
};

TEST_F(ProfilerTest, AnOperationThatWaitsIsNamed) {
  void* const context = Open(7);
  void* const group = Start(context, {.type = abi::kProfileGroup});
  void* const coll = Start(context, {.type = abi::kProfileColl, .parent = group, .function = "AllReduce", .number = 12});
  profiler_.Stop(coll);  // it is enqueued
  profiler_.Stop(group);
  void* const part = Part(context, coll);
  clock_.Advance(20);
  ASSERT_EQ(HeldOperations(), 1u);
  EXPECT_STREQ(held_[0].function, "AllReduce");
  EXPECT_EQ(held_[0].number, 12u);
  EXPECT_EQ(held_[0].communicator, 7u);
  EXPECT_EQ(held_[0].rank, 3);
  profiler_.Stop(part);
  clock_.Advance(20);
  EXPECT_EQ(HeldOperations(), 0u);
}

// As on a machine that has run for longer than 208 days, by the nanoseconds since its boot.
TEST(Profiler, AnyFirstIdFitsIntoAHandle) {
  FakeClock clock;
  for (const OperationId first : {OperationId{1} << 62, ~OperationId{0}, OperationId{1} << 61}) {
    Profiler profiler(&clock, kPid, first);
    void *context = nullptr, *coll = nullptr, *part = nullptr;
    int mask = 0;
    profiler.Open({.id = 7, .name = "", .rank = 0, .ranks = 2}, true, &context, &mask);
    for (int i = 0; i < 3; ++i) profiler.Start(context, &coll, {.type = abi::kProfileColl, .function = "AllReduce"});
    profiler.Start(context, &part, {.type = abi::kProfileProxyOp, .parent = coll, .pid = kPid});
    clock.Advance(20);
    std::array<abi::HeldOperationV1, 1> held{};
    EXPECT_EQ(profiler.HeldOperations(0, clock.Now() - 10, clock.Now(), held), 1u) << first;
  }
}

TEST_F(ProfilerTest, WithoutThePluginNothingIsAskedFor) {
  void* context = nullptr;
  int mask = -1;
  profiler_.Open({}, false, &context, &mask);
  EXPECT_EQ(mask, 0);
}

TEST_F(ProfilerTest, BeforeV4AnOperationNamesItsCommunicator) {
  void* context = nullptr;
  profiler_.Open({}, true, &context, nullptr);
  Event event{.type = abi::kProfileColl, .function = "AllReduce", .number = 1, .names_communicator = true, .communicator = 9, .rank = 5};
  event.communicator_name = "dp";
  Part(context, Start(context, event));
  clock_.Advance(20);
  ASSERT_EQ(HeldOperations(), 1u);
  EXPECT_EQ(held_[0].communicator, 9u);
  EXPECT_EQ(held_[0].rank, 5);
  EXPECT_EQ(held_[0].ranks, 0);
  EXPECT_STREQ(held_[0].communicator_name, "dp");
  event.communicator = 10;
  event.communicator_name = nullptr;
  Start(context, event);
  ASSERT_EQ(HeldOperations(), 1u);
  EXPECT_STREQ(held_[0].communicator_name, "");
}

// PXN: a process sends for another one, whose handles mean nothing here.
TEST_F(ProfilerTest, APartOfAnotherProcessesOperationIsNone) {
  void* const context = Open(7);
  void* const coll = Start(context, {.type = abi::kProfileColl, .function = "AllReduce", .number = 1});
  profiler_.Stop(Part(context, coll, kPid + 1));
  clock_.Advance(20);
  EXPECT_EQ(HeldOperations(), 0u);
}

TEST_F(ProfilerTest, NothingThatNcclGivesBackIsTrusted) {
  void* const context = Open(7);
  void* const coll = Start(context, {.type = abi::kProfileColl, .function = "AllReduce", .number = 1});
  void* const part = Part(context, coll);
  void* const foreign[] = {nullptr,
                           coll,
                           part,
                           context,
                           reinterpret_cast<void*>(UINTPTR_MAX),
                           reinterpret_cast<void*>(uintptr_t{4} << 2 | 1),
                           reinterpret_cast<void*>(uintptr_t{4} << 2 | 2),
                           reinterpret_cast<void*>(uintptr_t{3})};
  for (void* const handle : foreign) {
    if (handle != part) profiler_.Stop(handle);
    if (handle != coll) Part(context, handle);
    if (handle != context) Start(handle, {.type = abi::kProfileP2p, .function = "Send", .peer = 1});
    if (handle != context) profiler_.Close(handle);
    for (const uint64_t type : {uint64_t{0}, uint64_t{1}, uint64_t{0x40}, UINT64_MAX}) profiler_.Stop(Start(handle, {.type = type}));
  }
  profiler_.Start(context, nullptr, {.type = abi::kProfileColl});
  profiler_.Open({}, true, nullptr, nullptr);
  clock_.Advance(20);
  ASSERT_EQ(HeldOperations(), 1u) << "and what was outstanding is so still";
  profiler_.Stop(part);
  profiler_.Stop(part);
  clock_.Advance(20);
  EXPECT_EQ(HeldOperations(), 0u);
  profiler_.Close(context);
  profiler_.Close(context);
  profiler_.Stop(part);
}

TEST(FunctionNameTest, ANumberThatNoVersionKnowsHasNone) {
  EXPECT_STREQ(FunctionName(4), "AllReduce");
  EXPECT_STREQ(FunctionName(7), "Recv");
  EXPECT_EQ(FunctionName(8), nullptr);
  EXPECT_EQ(FunctionName(255), nullptr);
}

}  // namespace
}  // namespace r2cc::profiler
