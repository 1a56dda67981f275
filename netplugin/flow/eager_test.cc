#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "netplugin/flow/recv_ledger.h"
#include "netplugin/flow/send_ledger.h"

namespace r2cc::net {
namespace {

constexpr uint32_t kBase = 4096;

constexpr SendLedger::Limits kLimits{.chunk_base_bytes = kBase, .eager_bytes = 1024};

struct EagerSender {
  uint64_t order = 1;
  BufferPool pool;
  SendLedger ledger{7, kLimits, &order, &pool};

  EagerSender() { ledger.set_eager_window(2); }
};

TEST(Eager, TravelsWithoutAGrantWithinTheWindow) {
  EagerSender s;
  char data[1025] = {};
  s.ledger.Post(data, 1024);
  s.ledger.Post(data, 0);
  s.ledger.Post(data, 10);
  Chunk chunk;
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_TRUE(chunk.eager);
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_FALSE(s.ledger.Pull(0, &chunk)) << "beyond the window a grant is needed";
  EXPECT_TRUE(s.ledger.AckThrough(2));
  EXPECT_FALSE(s.ledger.Pull(0, &chunk)) << "posted as an ordinary message";
  ASSERT_TRUE(s.ledger.Grant(2, std::array<uint64_t, 1>{10}));
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_FALSE(chunk.eager);
}

TEST(Eager, PostedAndInFlightInOneItIsAsIfPulled) {
  EagerSender s;
  char data[4] = {1, 2, 3, 4};
  Chunk chunk;
  ASSERT_TRUE(s.ledger.PostEagerly(data, 4, 5, &chunk));
  EXPECT_TRUE(chunk.eager);
  EXPECT_EQ(chunk.message, 0u);
  EXPECT_EQ(chunk.bytes, 4u);
  EXPECT_EQ(static_cast<const void*>(chunk.data), data);
  EXPECT_FALSE(s.ledger.NextReady().any);
  EXPECT_TRUE(s.ledger.Holds(5));
  ASSERT_NE(s.ledger.Release(0), nullptr);
  EXPECT_EQ(s.ledger.done_through(), 1u);
  // Lost with its path it is sent again, before what comes after it.
  ASSERT_TRUE(s.ledger.PostEagerly(data, 0, 6, &chunk));
  EXPECT_EQ(s.ledger.Reclaim(5), 4u);
  ASSERT_TRUE(s.ledger.Pull(6, &chunk));
  EXPECT_EQ(chunk.message, 0u);
  EXPECT_FALSE(s.ledger.Pull(6, &chunk));
  EXPECT_TRUE(s.ledger.AckThrough(2));
}

TEST(Eager, OnlyWhatFitsTheWindowIsPostedEagerly) {
  EagerSender s;
  char data[1025] = {};
  Chunk chunk;
  EXPECT_FALSE(s.ledger.PostEagerly(data, 1025, 0, &chunk)) << "too large";
  ASSERT_TRUE(s.ledger.Grant(0, std::array<uint64_t, 1>{10}));
  EXPECT_FALSE(s.ledger.PostEagerly(data, 11, 0, &chunk)) << "larger than the buffer";
  EXPECT_EQ(s.ledger.posted_through(), 0u);
  ASSERT_TRUE(s.ledger.PostEagerly(data, 10, 0, &chunk));
  s.ledger.Post(data, 1025);
  EXPECT_FALSE(s.ledger.PostEagerly(data, 1, 0, &chunk)) << "the window is used up";
  EXPECT_EQ(s.ledger.posted_through(), 2u);
  // One that waits for its grant is overtaken.
  ASSERT_TRUE(s.ledger.AckThrough(1));
  ASSERT_TRUE(s.ledger.PostEagerly(data, 1, 0, &chunk));
  EXPECT_EQ(chunk.message, 2u);
  EXPECT_FALSE(s.ledger.NextReady().any);
  ASSERT_TRUE(s.ledger.Grant(1, std::array<uint64_t, 1>{1025}));
  EXPECT_TRUE(s.ledger.NextReady().any);
}

TEST(Eager, TheWindowIsLowWhenHalfOfItIsTaken) {
  EagerSender s;
  char data[1] = {};
  EXPECT_FALSE(s.ledger.window_low());
  s.ledger.Post(data, 1);
  EXPECT_TRUE(s.ledger.window_low());
  Chunk chunk;
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  ASSERT_TRUE(s.ledger.AckThrough(1));
  EXPECT_FALSE(s.ledger.window_low());
  EagerSender without;
  without.ledger.set_eager_window(0);
  without.ledger.Post(data, 1);
  EXPECT_FALSE(without.ledger.window_low());
}

TEST(Eager, OnlySmallMessagesAndOnlyIfTheReceiverOfferedAWindow) {
  EagerSender s;
  char data[1025] = {};
  s.ledger.Post(data, 1025);
  Chunk chunk;
  EXPECT_FALSE(s.ledger.Pull(0, &chunk));
  EagerSender without;
  without.ledger.set_eager_window(0);
  without.ledger.Post(data, 1);
  EXPECT_FALSE(without.ledger.Pull(0, &chunk));
}

TEST(Eager, TheBufferIsFreeOnceCopiedAndTheCopyIsReplayed) {
  EagerSender s;
  char data[3] = {1, 2, 3};
  const MessageId id = s.ledger.Post(data, 3);
  Chunk chunk;
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_EQ(s.ledger.done_through(), 0u);
  const std::byte* copy = s.ledger.Release(id);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(s.ledger.done_through(), 1u);
  EXPECT_EQ(s.ledger.acked_through(), 0u);
  std::memset(data, 9, sizeof(data));
  EXPECT_EQ(s.ledger.Reclaim(0), 3u);
  ASSERT_TRUE(s.ledger.Pull(1, &chunk));
  EXPECT_EQ(chunk.data, copy);
  EXPECT_EQ(chunk.data[2], std::byte{3});
}

TEST(Eager, ACopyThatIsHeldOutlivesItsAcknowledgement) {
  EagerSender s;
  char data[3] = {1, 2, 3};
  const MessageId id = s.ledger.Post(data, 3);
  Chunk chunk;
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_EQ(s.ledger.Copy(id), nullptr) << "not copied yet";
  const std::byte* copy = s.ledger.Release(id);
  const std::shared_ptr<const std::byte[]> held = s.ledger.Copy(id);
  EXPECT_EQ(held.get(), copy);
  ASSERT_TRUE(s.ledger.AckThrough(1));
  EXPECT_EQ(s.ledger.Copy(id), nullptr);
  EXPECT_EQ(held[2], std::byte{3});
}

TEST(Eager, IsOneChunkHoweverSmallTheChunksOfOthersAre) {
  EagerSender s;
  std::vector<char> data(5000);
  Chunk chunk;
  s.ledger.Post(data.data(), 1000, 128);
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_TRUE(chunk.eager);
  EXPECT_EQ(chunk.bytes, 1000u);
  s.ledger.Post(data.data(), data.size(), 128);
  ASSERT_TRUE(s.ledger.Grant(0, std::array<uint64_t, 2>{1000, 5000}));
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_EQ(chunk.bytes, 128u);
}

TEST(Eager, IsReportedDoneInOrder) {
  EagerSender s;
  std::vector<char> large(5000);
  s.ledger.Post(large.data(), large.size());
  const MessageId small = s.ledger.Post(large.data(), 8);
  ASSERT_NE(s.ledger.Release(small), nullptr);
  EXPECT_EQ(s.ledger.Release(0), nullptr) << "a large message is not copied";
  EXPECT_EQ(s.ledger.done_through(), 0u) << "NCCL tests the oldest first";
  ASSERT_TRUE(s.ledger.Grant(0, std::array<uint64_t, 1>{5000}));
  Chunk chunk;
  while (s.ledger.Pull(0, &chunk)) continue;
  ASSERT_TRUE(s.ledger.AckThrough(1));
  EXPECT_EQ(s.ledger.done_through(), 2u);
}

TEST(Eager, ALateGrantChangesNothing) {
  EagerSender s;
  char data[8] = {};
  s.ledger.Post(data, 8);
  Chunk chunk;
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  ASSERT_TRUE(s.ledger.Grant(0, std::array<uint64_t, 2>{8, 8}));
  EXPECT_FALSE(s.ledger.Pull(0, &chunk)) << "it travels once";
  ASSERT_TRUE(s.ledger.AckThrough(1));
  s.ledger.Post(data, 8);
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  ASSERT_TRUE(s.ledger.AckThrough(2));
  EXPECT_EQ(s.ledger.granted_through(), 2u);
}

TEST(Eager, WantsTheGrantOfALargeMessageAfterSmallOnes) {
  EagerSender s;
  std::vector<char> data(5000);
  s.ledger.Post(data.data(), data.size());
  EXPECT_FALSE(s.ledger.wants_grant());
  s.ledger.Post(data.data(), 8);
  EXPECT_FALSE(s.ledger.wants_grant());
  s.ledger.Post(data.data(), data.size());
  EXPECT_TRUE(s.ledger.wants_grant());
}

Chunk Small(MessageId message, uint32_t bytes, bool eager = true) { return Chunk{7, message, bytes, kBase, 0, nullptr, bytes, eager}; }

TEST(Eager, WaitsForItsBufferAndIsPlacedAsItIsPosted) {
  RecvLedger ledger(7);
  std::byte* to = nullptr;
  ASSERT_EQ(ledger.Begin(Small(0, 3), 1, &to), RecvLedger::Verdict::kPlace);
  std::memcpy(to, "abc", 3);
  EXPECT_FALSE(ledger.Finish(0, 0, 1)) << "nobody has posted a buffer for it";
  EXPECT_EQ(ledger.Begin(Small(0, 3), 2, &to), RecvLedger::Verdict::kDiscard);
  const FlowArrivals arrivals = ledger.Arrivals();
  ASSERT_EQ(arrivals.partial.size(), 1u) << "it is not to be replayed";
  EXPECT_EQ(arrivals.partial[0].placed, std::vector<bool>{true});
  char buffer[8] = {};
  ledger.Post(buffer, sizeof(buffer));
  EXPECT_EQ(ledger.placed_through(), 1u);
  EXPECT_EQ(ledger.SizeOf(0), 3u);
  EXPECT_STREQ(buffer, "abc");
  EXPECT_EQ(ledger.awaited_through(), 0u);
  EXPECT_TRUE(ledger.last_eager());
}

TEST(Eager, PostedWhileItArrivesItIsPlacedWhenWhole) {
  RecvLedger ledger(7);
  std::byte* to = nullptr;
  ASSERT_EQ(ledger.Begin(Small(0, 3), 1, &to), RecvLedger::Verdict::kPlace);
  char buffer[8] = {};
  ledger.Post(buffer, sizeof(buffer));
  EXPECT_EQ(ledger.Begin(Small(0, 3), 2, &to), RecvLedger::Verdict::kRefuse) << "epoch 1 may still write it";
  EXPECT_EQ(ledger.placed_through(), 0u);
  std::memcpy(to, "xyz", 3);
  EXPECT_TRUE(ledger.Finish(0, 0, 1));
  EXPECT_STREQ(buffer, "xyz");
}

TEST(Eager, MemoryThatADroppedLinkStillReadsIntoStaysUntilTheReplay) {
  RecvLedger ledger(7);
  std::byte* first = nullptr;
  std::byte* to = nullptr;
  ASSERT_EQ(ledger.Begin(Small(0, 3), 1, &first), RecvLedger::Verdict::kPlace);
  ledger.Drop(1);
  // Where the memory was given back this is mostly the same.
  ASSERT_EQ(ledger.Begin(Small(1, 3), 2, &to), RecvLedger::Verdict::kPlace);
  EXPECT_NE(to, first);
  std::memcpy(first, "abc", 3);
  ASSERT_EQ(ledger.Begin(Small(0, 3), 2, &to), RecvLedger::Verdict::kPlace);
  std::memcpy(to, "xyz", 3);
  ledger.Finish(0, 0, 2);
  char buffer[4] = {};
  ledger.Post(buffer, sizeof(buffer));
  EXPECT_STREQ(buffer, "xyz");
}

TEST(Eager, AHalfStagedMessageOfADeadCarrierIsForgotten) {
  RecvLedger ledger(7);
  std::byte* to = nullptr;
  ASSERT_EQ(ledger.Begin(Small(0, 3), 1, &to), RecvLedger::Verdict::kPlace);
  char buffer[8] = {};
  ledger.Post(buffer, sizeof(buffer));
  ledger.Drop(1);
  EXPECT_TRUE(ledger.Arrivals().partial.empty());
  ASSERT_EQ(ledger.Begin(Small(0, 3), 2, &to), RecvLedger::Verdict::kPlace);
  EXPECT_EQ(static_cast<void*>(to), static_cast<void*>(buffer));
}

TEST(Eager, AnEagerChunkOutsideTheWindowIsRefused) {
  RecvLedger ledger(7);
  std::byte* to = nullptr;
  EXPECT_EQ(ledger.Begin(Small(kEagerWindow, 3), 1, &to), RecvLedger::Verdict::kRefuse) << "beyond the window";
  EXPECT_EQ(ledger.Begin(Small(0, 3, false), 1, &to), RecvLedger::Verdict::kRefuse) << "not eager, not granted";
  Chunk half = Small(0, 3);
  half.message_bytes = 4;
  EXPECT_EQ(ledger.Begin(half, 1, &to), RecvLedger::Verdict::kRefuse) << "a part of a message";
  EXPECT_EQ(ledger.Begin(Small(0, kEagerBytesMax + 1), 1, &to), RecvLedger::Verdict::kRefuse);
}

TEST(Eager, LargerThanItsBufferItEndsTheFlow) {
  char buffer[2];
  std::byte* to = nullptr;
  RecvLedger early(7);
  ASSERT_EQ(early.Begin(Small(0, 3), 1, &to), RecvLedger::Verdict::kPlace);
  early.Finish(0, 0, 1);
  early.Post(buffer, sizeof(buffer));
  EXPECT_TRUE(early.overflowed());
  RecvLedger late(7);
  late.Post(buffer, sizeof(buffer));
  EXPECT_EQ(late.Begin(Small(0, 3), 1, &to), RecvLedger::Verdict::kDiscard);
  EXPECT_TRUE(late.overflowed());
}

}  // namespace
}  // namespace r2cc::net
