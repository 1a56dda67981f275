#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "netplugin/flow/recv_ledger.h"
#include "netplugin/flow/send_ledger.h"

namespace r2cc::net {
namespace {

constexpr uint32_t kBase = 4096;

struct Sender {
  uint64_t order = 1;
  BufferPool pool;
  SendLedger ledger{7, {.chunk_base_bytes = kBase}, &order, &pool};

  void Grant(MessageId first, std::vector<uint64_t> capacities) { ASSERT_TRUE(ledger.Grant(first, capacities)); }
};

TEST(SendLedger, NothingTravelsWithoutAGrant) {
  Sender s;
  std::vector<std::byte> data(10'000);
  s.ledger.Post(data.data(), data.size());
  Chunk chunk;
  EXPECT_FALSE(s.ledger.Pull(0, &chunk));
  s.Grant(0, {data.size()});
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_EQ(chunk.index, 0u);
  EXPECT_EQ(chunk.bytes, kBase);
  EXPECT_EQ(chunk.data, data.data());
  ASSERT_TRUE(s.ledger.Pull(1, &chunk));
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_EQ(chunk.bytes, 10'000u - 2 * kBase);
  EXPECT_FALSE(s.ledger.Pull(0, &chunk));
  EXPECT_TRUE(s.ledger.Holds(0));
  EXPECT_FALSE(s.ledger.Holds(7));
}

TEST(SendLedger, GrantsMayComeFirstTwiceAndInPieces) {
  Sender s;
  s.Grant(0, {100, 200});
  s.Grant(0, {100, 200, 300});
  s.Grant(1, {200});
  EXPECT_EQ(s.ledger.granted_through(), 3u);
  EXPECT_FALSE(s.ledger.Grant(4, std::array<uint64_t, 1>{1})) << "a gap";
  EXPECT_FALSE(s.ledger.Grant(1, std::array<uint64_t, 1>{201})) << "another buffer under the same number";
}

TEST(SendLedger, AMessageLargerThanItsBufferIsNotSent) {
  Sender s;
  s.Grant(0, {10});
  char data[11];
  s.ledger.Post(data, sizeof(data));
  EXPECT_TRUE(s.ledger.overflowed());
  Chunk chunk;
  EXPECT_FALSE(s.ledger.Pull(0, &chunk));
}

TEST(SendLedger, AnAckReleasesMessagesAndNoMore) {
  Sender s;
  s.Grant(0, {10, 10});
  char data[10];
  s.ledger.Post(data, 10);
  s.ledger.Post(data, 10);
  Chunk chunk;
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_FALSE(s.ledger.AckThrough(2)) << "the second message was never in flight: nobody can have it";
  EXPECT_FALSE(s.ledger.AckThrough(3)) << "never posted";
  EXPECT_EQ(s.ledger.acked_through(), 1u);
  EXPECT_TRUE(s.ledger.AckThrough(1)) << "told again";
}

TEST(SendLedger, ReclaimReplaysWhatDidNotArriveAndOldestFirst) {
  Sender s;
  std::vector<std::byte> data(4 * kBase);
  s.Grant(0, {data.size(), data.size()});
  s.ledger.Post(data.data(), data.size());
  s.ledger.Post(data.data(), data.size());
  Chunk chunk;
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(s.ledger.Pull(static_cast<PathEpoch>(i % 2), &chunk));  // message 0 whole, half of 1
  FlowArrivals arrivals{7, 0, {{0, kBase, {true, false, false, true}}}};
  // PathEpoch 0 held chunks 0 and 2 of message 0 and chunk 0 of message 1; chunk 0 has arrived.
  s.ledger.Arrived(arrivals);
  EXPECT_EQ(s.ledger.Reclaim(0), 2u * kBase);
  ASSERT_TRUE(s.ledger.Pull(5, &chunk));
  EXPECT_EQ(chunk.message, 0u);
  EXPECT_EQ(chunk.index, 2u);
  ASSERT_TRUE(s.ledger.Pull(5, &chunk));
  EXPECT_EQ(chunk.message, 1u);
  EXPECT_EQ(chunk.index, 0u);
  ASSERT_TRUE(s.ledger.Pull(5, &chunk));
  EXPECT_EQ(chunk.index, 2u);
  s.ledger.Arrived(arrivals);
  EXPECT_EQ(s.ledger.Reclaim(0), 0u) << "told again, nothing changes";
}

TEST(SendLedger, ReclaimIgnoresArrivalsThatCannotBe) {
  Sender s;
  std::vector<std::byte> data(2 * kBase);
  s.Grant(0, {data.size()});
  s.ledger.Post(data.data(), data.size());
  Chunk chunk;
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  FlowArrivals garbage{7, 99, {{0, kBase / 2, {true, true}}, {5, kBase, {true, true}}, {0, kBase, {true}}}};
  s.ledger.Arrived(garbage);
  EXPECT_EQ(s.ledger.Reclaim(0), kBase);
  EXPECT_EQ(s.ledger.acked_through(), 0u);
}

TEST(SendLedger, ZeroBytesAreOneChunk) {
  Sender s;
  s.Grant(0, {0});
  s.ledger.Post(nullptr, 0);
  Chunk chunk;
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_EQ(chunk.bytes, 0u);
  EXPECT_FALSE(s.ledger.Pull(0, &chunk));
}

TEST(Types, ChunksAreAlignedAndLimited) {
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{131072}, uint64_t{1} << 30, (uint64_t{1} << 30) + 1, kMessageBytesMax}) {
    const uint32_t chunk_bytes = ChunkBytesFor(bytes, 128 * 1024);
    EXPECT_EQ(chunk_bytes % kChunkAlignment, 0u);
    EXPECT_GE(chunk_bytes, 128u * 1024);
    EXPECT_LE(ChunkCount(bytes, chunk_bytes), kChunksMax);
  }
}

// ---- receiver ----

Chunk Header(MessageId message, uint64_t message_bytes, uint32_t index, uint32_t bytes) {
  return Chunk{7, message, message_bytes, kBase, index, nullptr, bytes};
}

TEST(RecvLedger, PlacesEachChunkOnceAndReportsInOrder) {
  RecvLedger ledger(7);
  std::vector<std::byte> first(2 * kBase), second(kBase);
  ledger.Post(first.data(), first.size());
  ledger.Post(second.data(), second.size());
  std::byte* to = nullptr;
  ASSERT_EQ(ledger.Begin(Header(1, 100, 0, 100), 0, &to), RecvLedger::Verdict::kPlace);
  EXPECT_EQ(to, second.data());
  EXPECT_FALSE(ledger.Finish(1, 0, 0)) << "the message before it is not whole";
  ASSERT_EQ(ledger.Begin(Header(0, kBase + 1, 1, 1), 1, &to), RecvLedger::Verdict::kPlace);
  EXPECT_EQ(to, first.data() + kBase);
  EXPECT_FALSE(ledger.Finish(0, 1, 1));
  EXPECT_EQ(ledger.Begin(Header(0, kBase + 1, 1, 1), 0, &to), RecvLedger::Verdict::kDiscard);
  ASSERT_EQ(ledger.Begin(Header(0, kBase + 1, 0, kBase), 0, &to), RecvLedger::Verdict::kPlace);
  EXPECT_EQ(ledger.placed_through(), 0u) << "a epoch holds a claim";
  EXPECT_TRUE(ledger.Finish(0, 0, 0));
  EXPECT_EQ(ledger.placed_through(), 2u);
  EXPECT_EQ(ledger.SizeOf(0), kBase + 1u);
  EXPECT_EQ(ledger.SizeOf(1), 100u);
  EXPECT_EQ(ledger.Begin(Header(0, kBase + 1, 0, kBase), 0, &to), RecvLedger::Verdict::kDiscard) << "the buffer is NCCL's again";
}

TEST(RecvLedger, RefusesHeadersThatCannotBe) {
  RecvLedger ledger(7);
  std::vector<std::byte> buffer(2 * kBase);
  ledger.Post(buffer.data(), buffer.size());
  std::byte* to = nullptr;
  EXPECT_EQ(ledger.Begin(Header(1, 10, 0, 10), 0, &to), RecvLedger::Verdict::kRefuse) << "not posted";
  EXPECT_EQ(ledger.Begin(Header(0, buffer.size() + 1, 0, kBase), 0, &to), RecvLedger::Verdict::kRefuse) << "larger than the buffer";
  Chunk odd = Header(0, kBase, 0, kBase);
  odd.chunk_bytes = 100;
  EXPECT_EQ(ledger.Begin(odd, 0, &to), RecvLedger::Verdict::kRefuse) << "not aligned";
  odd.chunk_bytes = 0;
  EXPECT_EQ(ledger.Begin(odd, 0, &to), RecvLedger::Verdict::kRefuse);
  ASSERT_EQ(ledger.Begin(Header(0, 2 * kBase, 0, kBase), 0, &to), RecvLedger::Verdict::kPlace);
  EXPECT_EQ(ledger.Begin(Header(0, 2 * kBase, 2, 0), 0, &to), RecvLedger::Verdict::kRefuse) << "index beyond the end";
  EXPECT_EQ(ledger.Begin(Header(0, 2 * kBase, 1, kBase - 1), 0, &to), RecvLedger::Verdict::kRefuse) << "wrong length";
  EXPECT_EQ(ledger.Begin(Header(0, kBase, 0, kBase), 0, &to), RecvLedger::Verdict::kRefuse) << "another size than before";
  EXPECT_EQ(ledger.Begin(Header(0, 2 * kBase, 0, kBase), 1, &to), RecvLedger::Verdict::kRefuse) << "another epoch may still write it";
}

TEST(RecvLedger, AFencedCarriersHalfChunksAreNobodysAgain) {
  RecvLedger ledger(7);
  std::vector<std::byte> buffer(2 * kBase);
  ledger.Post(buffer.data(), buffer.size());
  std::byte* to = nullptr;
  ASSERT_EQ(ledger.Begin(Header(0, 2 * kBase, 0, kBase), 0, &to), RecvLedger::Verdict::kPlace);
  ledger.Finish(0, 0, 0);
  ASSERT_EQ(ledger.Begin(Header(0, 2 * kBase, 1, kBase), 0, &to), RecvLedger::Verdict::kPlace);
  ledger.Drop(0);
  const FlowArrivals arrivals = ledger.Arrivals();
  ASSERT_EQ(arrivals.partial.size(), 1u);
  EXPECT_EQ(arrivals.partial[0].placed, (std::vector<bool>{true, false}));
  EXPECT_EQ(ledger.Begin(Header(0, 2 * kBase, 1, kBase), 3, &to), RecvLedger::Verdict::kPlace);
}

TEST(RecvLedger, NoBytesIntoNoBufferArePlacedToo) {
  RecvLedger ledger(7);
  ledger.Post(nullptr, 0);
  std::byte* to = nullptr;
  ASSERT_EQ(ledger.Begin(Header(0, 0, 0, 0), 0, &to), RecvLedger::Verdict::kPlace);
  EXPECT_NE(to, nullptr) << "null would mean that it is here already";
  EXPECT_TRUE(ledger.Finish(0, 0, 0));
}

TEST(RecvLedger, CapacitiesAreOfWhatIsOutstanding) {
  RecvLedger ledger(7);
  std::vector<std::byte> buffer(100);
  for (uint64_t capacity : {10, 20, 30}) ledger.Post(buffer.data(), capacity);
  EXPECT_EQ(ledger.Capacities(), (std::vector<uint64_t>{10, 20, 30}));
  std::byte* to;
  ASSERT_EQ(ledger.Begin(Header(0, 0, 0, 0), 0, &to), RecvLedger::Verdict::kPlace);
  ledger.Finish(0, 0, 0);
  EXPECT_EQ(ledger.Capacities(), (std::vector<uint64_t>{20, 30}));
}

// ---- where buffers lie ----

TEST(SendLedger, AGrantMayChangeItsGenerationAndNothingElse) {
  Sender s;
  char data[100];
  const std::array<uint64_t, 2> capacities{100, 100};
  const auto grant = [&](const BufferPlace& first, const BufferPlace& second) {
    return s.ledger.Grant(0, capacities, std::array<BufferPlace, 2>{first, second});
  };
  s.Grant(0, {100});
  EXPECT_EQ(s.ledger.PlaceOf(0), nullptr);
  ASSERT_TRUE(grant({5, 1, 64}, {}));
  EXPECT_EQ(s.ledger.PlaceOf(0)->offset, 64u);
  EXPECT_EQ(s.ledger.PlaceOf(1), nullptr) << "its memory needs no key";
  ASSERT_TRUE(grant({5, 3, 64}, {5, 3, 0}));
  ASSERT_TRUE(grant({5, 2, 64}, {})) << "a word that was overtaken";
  EXPECT_EQ(s.ledger.PlaceOf(0)->generation, 3u);
  EXPECT_EQ(s.ledger.PlaceOf(1)->region, 5u);
  EXPECT_FALSE(grant({5, 3, 65}, {})) << "another place";
  EXPECT_FALSE(grant({6, 3, 64}, {})) << "another region";
  EXPECT_FALSE(s.ledger.Grant(0, capacities, std::array<BufferPlace, 1>{})) << "one place for two buffers";
  s.Grant(0, {100, 100, 100});
  s.ledger.Post(data, 100);
  EXPECT_EQ(s.ledger.NextReady().region, 5u);
  Chunk chunk;
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  ASSERT_TRUE(s.ledger.AckThrough(1));
  EXPECT_EQ(s.ledger.PlaceOf(0), nullptr);
  EXPECT_EQ(s.ledger.PlaceOf(1)->offset, 0u);
  s.ledger.Post(data, 100);
  s.ledger.Post(data, 100);
  ASSERT_TRUE(s.ledger.Pull(0, &chunk));
  EXPECT_EQ(s.ledger.NextReady().region, 0u);
}

struct Generations final : RegionGenerations {
  uint32_t GenerationOf(RegionId region) const override { return region == 5 ? 2 : 0; }
};

TEST(RecvLedger, PlacesAreOnlyInMemoryThatTheSenderKnows) {
  RecvLedger ledger(7);
  std::vector<std::byte> bytes(100);
  const Memory known{.id = 5, .base = bytes.data(), .bytes = bytes.size()}, unknown{.id = 6, .base = bytes.data(), .bytes = bytes.size()};
  ledger.Post(bytes.data(), 10);
  ledger.Post({bytes.data(), &unknown}, 10);
  EXPECT_TRUE(ledger.Places(Generations()).empty());
  ledger.Post({bytes.data() + 60, &known}, 10);
  const std::vector<BufferPlace> places = ledger.Places(Generations());
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].region, 0u);
  EXPECT_EQ(places[1].region, 0u);
  EXPECT_EQ(places[2].region, 5u);
  EXPECT_EQ(places[2].generation, 2u);
  EXPECT_EQ(places[2].offset, 60u);
}

// ---- the eager path ----

// ---- memory of a GPU ----

// A message of three chunks into memory of a GPU.
struct GpuReceiver {
  std::vector<std::byte> memory = std::vector<std::byte>(3 * kBase);
  Memory region{.id = 1, .kind = MemoryKind::kCuda, .base = memory.data(), .bytes = memory.size()};
  RecvLedger ledger{7};

  GpuReceiver() { ledger.Post({memory.data(), &region}, memory.size()); }
  void Land(uint32_t index, PathEpoch path) {
    std::byte* to = nullptr;
    const Chunk header{.flow = 7, .message_bytes = memory.size(), .chunk_bytes = kBase, .index = index, .bytes = kBase};
    ASSERT_EQ(ledger.Begin(header, path, &to), RecvLedger::Verdict::kPlace);
    EXPECT_EQ(to, memory.data() + index * kBase);
    EXPECT_FALSE(ledger.Finish(0, index, path)) << "nobody has flushed it";
  }
};

TEST(RecvLedger, AChunkThatLandedInAGpuIsPlacedWhenEachPathIsFlushed) {
  GpuReceiver r;
  EXPECT_TRUE(r.ledger.OnDevice(0));
  r.Land(0, 4);
  r.Land(2, 9);
  EXPECT_TRUE(r.ledger.TakeFlushes().empty()) << "it is not whole";
  r.Land(1, 4);
  const auto flushes = r.ledger.TakeFlushes();
  ASSERT_EQ(flushes.size(), 2u);
  EXPECT_EQ(flushes[0].epoch, 4);
  EXPECT_EQ(flushes[1].epoch, 9);
  EXPECT_EQ(flushes[0].to.data, r.memory.data());
  EXPECT_FALSE(r.ledger.Flushed(flushes[1].name, 9));
  EXPECT_EQ(r.ledger.placed_through(), 0u);
  EXPECT_EQ(r.ledger.Arrivals().partial.at(0).placed, (std::vector<bool>{false, false, true}));
  EXPECT_TRUE(r.ledger.Flushed(flushes[0].name, 4));
  EXPECT_EQ(r.ledger.placed_through(), 1u);
  EXPECT_FALSE(r.ledger.Flushed(flushes[0].name, 4)) << "told again";
}

TEST(RecvLedger, APathThatIsLostUnflushedBringsItsChunksAgain) {
  GpuReceiver r;
  r.Land(0, 4);
  r.Land(1, 9);
  r.Land(2, 4);
  const auto first = r.ledger.TakeFlushes();
  r.ledger.Drop(9);
  EXPECT_EQ(r.ledger.Arrivals().partial.at(0).placed, (std::vector<bool>{false, false, false}));
  // It comes by the other path, which is being flushed: of that this round says nothing.
  r.Land(1, 4);
  const auto second = r.ledger.TakeFlushes();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].epoch, 4);
  EXPECT_FALSE(r.ledger.Flushed(first[0].name, 4));
  EXPECT_EQ(r.ledger.placed_through(), 0u);
  EXPECT_TRUE(r.ledger.Flushed(second[0].name, 4));
}

TEST(RecvLedger, AFlushedChunkStaysPlacedWhenItsPathIsLost) {
  GpuReceiver r;
  r.Land(0, 4);
  r.Land(1, 9);
  r.Land(2, 4);
  const auto flushes = r.ledger.TakeFlushes();
  EXPECT_FALSE(r.ledger.Flushed(flushes[0].name, 4));
  r.ledger.Drop(4);
  EXPECT_EQ(r.ledger.Arrivals().partial.at(0).placed, (std::vector<bool>{true, false, true}));
  EXPECT_TRUE(r.ledger.Flushed(flushes[1].name, 9));
}

TEST(RecvLedger, AChunkThatHasLandedIsNotWrittenAgain) {
  GpuReceiver r;
  r.Land(0, 4);
  std::byte* to = nullptr;
  const Chunk header{.flow = 7, .message_bytes = 3 * kBase, .chunk_bytes = kBase, .index = 0, .bytes = kBase};
  EXPECT_EQ(r.ledger.Begin(header, 5, &to), RecvLedger::Verdict::kDiscard);
}

TEST(RecvLedger, NoBytesNeedNoFlush) {
  GpuReceiver r;
  std::byte* to = nullptr;
  const Chunk header{.flow = 7, .chunk_bytes = kBase};
  ASSERT_EQ(r.ledger.Begin(header, 4, &to), RecvLedger::Verdict::kPlace);
  EXPECT_TRUE(r.ledger.Finish(0, 0, 4));
  EXPECT_TRUE(r.ledger.TakeFlushes().empty());
}

}  // namespace
}  // namespace r2cc::net
