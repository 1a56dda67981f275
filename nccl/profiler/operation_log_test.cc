#include "nccl/profiler/operation_log.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace r2cc::profiler {
namespace {

class OperationLogTest : public testing::Test {
 protected:
  // An operation that is outstanding from `begun` on; until `ended`, if that is not 0.
  OperationId Run(uint64_t communicator, const char* function, uint32_t number, Nanos begun, Nanos ended = 0,
                  int peer = OperationLog::kNoPeer) {
    const OperationId id = log_.Begin(communicator, function, number, peer);
    EXPECT_TRUE(log_.BeginPart(id, begun));
    if (ended != 0) log_.EndPart(id, ended);
    return id;
  }
  // "AllReduce 3", by time.
  std::vector<std::string> HeldOperations(Nanos begun, Nanos ended, uint64_t id = 0) {
    const size_t count = log_.HeldOperations(id, begun, ended, held_);
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) names.push_back(std::string(held_[i].function) + " " + std::to_string(held_[i].number));
    return names;
  }

  OperationLog log_{77};
  const uint64_t tensor_ = log_.Open({.id = 0x70, .name = "tp0", .rank = 3, .ranks = 8});
  const uint64_t data_ = log_.Open({.id = 0xd0, .name = "dp", .rank = 1, .ranks = 2});
  std::array<abi::HeldOperationV1, 4> held_{};
};

using Names = std::vector<std::string>;

TEST_F(OperationLogTest, AnOperationOutstandingForTheWholeStallIsNamed) {
  Run(tensor_, "AllReduce", 1, 10, 100);
  Run(tensor_, "AllReduce", 2, 105, 420);
  Run(tensor_, "AllGather", 1, 430);
  EXPECT_EQ(HeldOperations(110, 410), Names{"AllReduce 2"});
  EXPECT_EQ(held_[0].held_ns, 300);
  EXPECT_EQ(held_[0].communicator, 0x70u);
  EXPECT_EQ(held_[0].rank, 3);
  EXPECT_EQ(held_[0].ranks, 8);
  EXPECT_STREQ(held_[0].communicator_name, "tp0");
}

TEST_F(OperationLogTest, AnUnfinishedOperationIsHeldToTheEndOfTheStall) {
  Run(tensor_, "AllReduce", 1, 150);
  EXPECT_EQ(HeldOperations(100, 200), Names{"AllReduce 1"});
  EXPECT_EQ(held_[0].held_ns, 50);
}

TEST_F(OperationLogTest, AnOperationOutstandingForLessThanHalfOfTheStallIsNotNamed) {
  Run(tensor_, "AllReduce", 1, 10, 149);
  Run(tensor_, "AllReduce", 2, 151);
  EXPECT_EQ(HeldOperations(100, 200), Names{});
  EXPECT_EQ(HeldOperations(100, 196), Names{"AllReduce 1"});
}

TEST_F(OperationLogTest, AnOperationIsOutstandingFromTheFirstPartToTheLast) {
  const OperationId id = log_.Begin(tensor_, "AllReduce", 1, OperationLog::kNoPeer);
  for (const Nanos begun : {10, 20, 30}) ASSERT_TRUE(log_.BeginPart(id, begun));
  log_.EndPart(id, 40);
  log_.EndPart(id, 50);
  EXPECT_EQ(HeldOperations(100, 200), Names{"AllReduce 1"}) << "one part is not done";
  log_.EndPart(id, 300);
  EXPECT_EQ(HeldOperations(100, 200), Names{"AllReduce 1"});
  EXPECT_EQ(HeldOperations(300, 400), Names{});
  log_.EndPart(id, 500);
  EXPECT_EQ(HeldOperations(300, 400), Names{}) << "no part is there that could end";
}

TEST_F(OperationLogTest, AnEnqueuedOperationIsNotOutstanding) {
  log_.Begin(tensor_, "AllReduce", 1, OperationLog::kNoPeer);
  EXPECT_EQ(HeldOperations(100, 200), Names{});
}

TEST_F(OperationLogTest, TheLongestComesFirstAndNoMoreThanFit) {
  for (uint32_t number = 1; number <= 6; ++number) Run(tensor_, "AllReduce", number, 100 + number);
  EXPECT_EQ(HeldOperations(100, 200), (Names{"AllReduce 1", "AllReduce 2", "AllReduce 3", "AllReduce 4"}));
  EXPECT_EQ(log_.HeldOperations(0, 100, 200, {}), 0u);
}

TEST_F(OperationLogTest, NamesTheFlowsCommunicatorIfItIsKnown) {
  Run(tensor_, "AllReduce", 1, 90);
  Run(data_, "ReduceScatter", 7, 90);
  EXPECT_EQ(HeldOperations(100, 200), (Names{"AllReduce 1", "ReduceScatter 7"}));
  EXPECT_EQ(HeldOperations(100, 200, 0xd0), Names{"ReduceScatter 7"});
  EXPECT_EQ(HeldOperations(100, 200, 0x12345), (Names{"AllReduce 1", "ReduceScatter 7"})) << "a child shares its parent's connections";
}

TEST_F(OperationLogTest, ASendAndAReceiveNameTheirPeer) {
  Run(tensor_, "Send", 0, 90, 0, 5);
  Run(tensor_, "Recv", 0, 91, 0, 6);
  EXPECT_EQ(HeldOperations(100, 200), (Names{"Send to 5 0", "Recv from 6 0"}));
}

TEST_F(OperationLogTest, AClosedCommunicatorHasNoNames) {
  Run(tensor_, "AllReduce", 1, 90);
  log_.Close(tensor_);
  log_.Close(4711);
  EXPECT_EQ(HeldOperations(100, 200), Names{});
  Run(4711, "AllReduce", 1, 90);
  EXPECT_EQ(HeldOperations(100, 200), Names{});
}

TEST_F(OperationLogTest, AnOldOperationIsForgottenAndItsIdNamesNoOther) {
  const OperationId old = Run(tensor_, "AllReduce", 1, 90);
  for (size_t i = 1; i < OperationLog::kMost; ++i) log_.Begin(tensor_, "AllGather", 2, OperationLog::kNoPeer);
  EXPECT_EQ(HeldOperations(100, 200), Names{"AllReduce 1"});
  log_.Begin(tensor_, "AllGather", 3, OperationLog::kNoPeer);
  EXPECT_EQ(HeldOperations(100, 200), Names{});
  EXPECT_FALSE(log_.BeginPart(old, 95));
  log_.EndPart(old, 96);
  EXPECT_EQ(HeldOperations(100, 200), Names{});
  EXPECT_FALSE(log_.BeginPart(0, 1));
}

TEST_F(OperationLogTest, TextsAreCutAndPrintable) {
  log_.Find(tensor_)->name = "a\x01\xc3\xa9" + std::string(100, 'n');
  Run(tensor_, "AFunctionWithAVeryLongNameIndeed", 1, 90);
  Run(tensor_, nullptr, 2, 90);
  EXPECT_EQ(HeldOperations(100, 200), (Names{"AFunctionWithAVeryLongN 1", "operation 2"}));
  EXPECT_EQ(std::string(held_[0].communicator_name), "a???" + std::string(59, 'n'));
}

}  // namespace
}  // namespace r2cc::profiler
