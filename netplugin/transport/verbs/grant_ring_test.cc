#include "netplugin/transport/verbs/grant_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace r2cc::net::verbs {
namespace {

constexpr uint32_t kTag = 0x5eed;
constexpr size_t kMost = 4;

const auto kAllOpen = [](FlowId) { return true; };

Record SomeRecord() { return {RecordKind::kGrant, 7, 100, 3, 12, 40, 2, 42, 1 << 20, {5, 2, 4096}, 1 << 22}; }
// The receiver's state: messages from `placed` to `posted`, each with a capacity of its own.
FlowReport GrantOf(FlowId flow, MessageId placed, MessageId posted, uint32_t generation = 1) {
  FlowReport report{.flow = flow, .placed_through = placed, .grants = true};
  for (MessageId message = placed; message < posted; ++message) {
    report.capacities.push_back(1000 + message);
    report.places.push_back({3, generation, message * 128});
  }
  return report;
}
// What the sender's ledger would do with frames.
struct Ledger {
  MessageId acked = 0, granted = 0;
  void Take(const FlowReport& report) {
    ASSERT_LE(report.placed_through, granted);
    acked = std::max(acked, report.placed_through);
    for (size_t i = 0; i < report.capacities.size(); ++i) {
      ASSERT_EQ(report.capacities[i], 1000 + report.placed_through + i);
      ASSERT_EQ(report.places[i].offset, (report.placed_through + i) * 128);
      granted = std::max(granted, report.placed_through + i + 1);
    }
  }
};

TEST(GrantRing, RecordsComeBackAndGarbageDoesNot) {
  Record got;
  auto data = Encode(SomeRecord(), kTag);
  ASSERT_TRUE(Decode(data, kTag, &got));
  EXPECT_EQ(got, SomeRecord());
  EXPECT_FALSE(Decode(data, kTag + 1, &got));
  for (size_t bit = 0; bit < 8 * kRecordBytes; ++bit) {
    data[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(Decode(data, kTag, &got)) << bit;
    data[bit / 8] ^= std::byte{1} << bit % 8;
  }
  EXPECT_FALSE(Decode(RecordData{}, 0, &got));
}

TEST(GrantRing, RefusesWhatNobodyHonestWrites) {
  Record got;
  for (const auto change : {+[](Record* r) { r->message = 39; }, +[](Record* r) { r->message = 40 + kMessagesPerFlow - 1; },
                            +[](Record* r) { r->messages = 0; }, +[](Record* r) { r->messages = 3; },
                            +[](Record* r) { r->place.generation = 0; }, +[](Record* r) { r->kind = static_cast<RecordKind>(4); }}) {
    Record bad = SomeRecord();
    change(&bad);
    EXPECT_FALSE(Decode(Encode(bad, kTag), kTag, &got));
  }
}

TEST(GrantRing, ASteadyFlowTakesOneRecordAMessage) {
  GrantWriter writer;
  GrantReader reader(kAllOpen);
  Ledger ledger;
  for (MessageId message = 0; message < 1000; ++message) {
    const auto records = writer.RecordsOf(GrantOf(1, message, message + 1), kMost);
    ASSERT_TRUE(records.has_value());
    ASSERT_EQ(records->size(), 1u);
    FlowReport report;
    ASSERT_EQ(reader.Read(records->front(), &report), GrantReader::Result::kReport);
    ledger.Take(report);
    EXPECT_EQ(ledger.granted, message + 1);
    EXPECT_EQ(ledger.acked, message);
  }
}

// Neighbours in a ring of buffers: the same memory, the same capacity.
TEST(GrantRing, TwoMessagesThatAreAlikeTakeOneRecord) {
  GrantWriter writer;
  GrantReader reader(kAllOpen);
  FlowReport grant{.flow = 1, .placed_through = 5, .grants = true};
  for (uint64_t i = 0; i < 5; ++i) {
    grant.capacities.push_back(4096);
    grant.places.push_back({3, i < 3 ? 1u : 2u, i * i * 128});
  }
  const auto records = writer.RecordsOf(grant, kMost);
  ASSERT_TRUE(records && records->size() == 3);
  FlowReport report;
  for (const Record& record : *records) {
    Record got;
    ASSERT_TRUE(Decode(Encode(record, kTag), kTag, &got));
    ASSERT_EQ(reader.Read(got, &report), GrantReader::Result::kReport);
  }
  EXPECT_EQ(report.placed_through, 5u);
  EXPECT_EQ(report.capacities, grant.capacities);
  ASSERT_EQ(report.places.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(report.places[i].offset, grant.places[i].offset);
    EXPECT_EQ(report.places[i].generation, grant.places[i].generation);
  }
}

TEST(GrantRing, AnAcknowledgementIsOneRecord) {
  GrantWriter writer;
  GrantReader reader(kAllOpen);
  const auto records = writer.RecordsOf({.flow = 1, .placed_through = 9}, kMost);
  ASSERT_TRUE(records && records->size() == 1);
  FlowReport report;
  ASSERT_EQ(reader.Read(records->front(), &report), GrantReader::Result::kReport);
  EXPECT_FALSE(report.grants);
  EXPECT_EQ(report.placed_through, 9u);
}

TEST(GrantRing, FramesGoWhereRecordsDoNot) {
  GrantWriter writer;
  EXPECT_FALSE(writer.RecordsOf(GrantOf(1, 0, kMost + 1), kMost).has_value());
  writer.Sent(GrantOf(1, 0, kMost + 1));
  EXPECT_EQ(writer.RecordsOf(GrantOf(1, 1, kMost + 2), kMost)->size(), 1u);
  // The keys have changed: what was granted is said again.
  EXPECT_FALSE(writer.RecordsOf(GrantOf(1, 1, kMost + 3, 2), kMost).has_value());
  // The ring is full.
  EXPECT_FALSE(writer.RecordsOf({.flow = 1, .placed_through = 2}, 0).has_value());
}

// As a writer does that has forgotten what it has said.
TEST(GrantRing, ARepeatedReportHasItsNewKeys) {
  GrantReader reader(kAllOpen);
  FlowReport report;
  for (const uint32_t generation : {1, 2, 1}) {
    GrantWriter writer;
    const auto records = writer.RecordsOf(GrantOf(1, 0, 2, generation), kMost);
    ASSERT_TRUE(records.has_value());
    for (const Record& record : *records) ASSERT_EQ(reader.Read(record, &report), GrantReader::Result::kReport);
    EXPECT_EQ(report.places[0].generation, std::max(generation, report.places[1].generation));
  }
  EXPECT_EQ(report.places[0].generation, 2u) << "an older one that was late";
}

TEST(GrantRing, ARecordOfAClosedFlowIsIgnored) {
  std::set<FlowId> open = {1};
  GrantReader reader([&open](FlowId flow) { return open.contains(flow); });
  FlowReport report;
  Record record = SomeRecord();
  record.flow = 1;
  record.message = record.placed_through;
  ASSERT_EQ(reader.Read(record, &report), GrantReader::Result::kReport);
  open.clear();
  // Whatever else is not known of it: nobody waits for that.
  record.message += 5;
  EXPECT_EQ(reader.Read(record, &report), GrantReader::Result::kNothing);
  reader.Received(GrantOf(1, 0, 10));
  // And it takes no memory.
  for (FlowId flow = 0; flow < 2 * kFlowSlots; ++flow) {
    open = {flow};
    record.flow = flow;
    record.message = record.placed_through;
    ASSERT_EQ(reader.Read(record, &report), GrantReader::Result::kReport);
  }
}

TEST(GrantRing, AWriterRemembersAsManyFlowsAsThereMayBe) {
  GrantWriter writer;
  for (FlowId flow = 0; flow <= kFlowSlots; ++flow) ASSERT_EQ(writer.RecordsOf(GrantOf(flow, 0, 1), kMost)->size(), 1u);
  // The others are forgotten, and said again.
  EXPECT_EQ(writer.RecordsOf(GrantOf(3, 0, 1), kMost)->front().kind, RecordKind::kGrant);
  EXPECT_EQ(writer.RecordsOf(GrantOf(3, 0, 1), kMost)->front().kind, RecordKind::kAck);
}

TEST(GrantRing, ARecordWaitsForTheFrameBeforeIt) {
  GrantWriter writer;
  GrantReader reader(kAllOpen);
  const FlowReport first = GrantOf(1, 0, 10);
  ASSERT_FALSE(writer.RecordsOf(first, kMost).has_value());
  writer.Sent(first);
  const auto records = writer.RecordsOf(GrantOf(1, 0, 11), kMost);
  ASSERT_TRUE(records && records->size() == 1);
  FlowReport report;
  EXPECT_EQ(reader.Read(records->front(), &report), GrantReader::Result::kLater);
  reader.Received(first);
  ASSERT_EQ(reader.Read(records->front(), &report), GrantReader::Result::kReport);
  EXPECT_EQ(report.capacities.size(), 11u);
}

TEST(GrantRing, AnotherCapacityIsGarbled) {
  GrantReader reader(kAllOpen);
  FlowReport report;
  Record record = SomeRecord();
  record.message = record.placed_through;
  ASSERT_EQ(reader.Read(record, &report), GrantReader::Result::kReport);
  record.capacity += 1;
  EXPECT_EQ(reader.Read(record, &report), GrantReader::Result::kGarbled);
  record.kind = RecordKind::kCredit;
  EXPECT_EQ(reader.Read(record, &report), GrantReader::Result::kGarbled);
}

TEST(GrantRing, FlowNumbersFromAPeerAreLimited) {
  GrantReader reader(kAllOpen);
  FlowReport report;
  Record record = SomeRecord();
  record.message = record.placed_through;
  for (FlowId flow = 0; flow < kFlowSlots; ++flow) {
    record.flow = flow;
    ASSERT_EQ(reader.Read(record, &report), GrantReader::Result::kReport);
  }
  record.flow = kFlowSlots;
  EXPECT_EQ(reader.Read(record, &report), GrantReader::Result::kGarbled);
}

// Whatever the receiver says of several flows, and whichever way it goes, the sender hears it all, once the last word is there.
TEST(GrantRing, ManyFlowsOnBothWays) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    GrantWriter writer;
    GrantReader reader(kAllOpen);
    std::vector<std::pair<MessageId, MessageId>> flows(3);  // placed, posted
    std::vector<Ledger> ledgers(3);
    std::deque<Record> ring;
    std::deque<FlowReport> frames;
    const auto read = [&](bool frames_too) {
      for (FlowReport report; !ring.empty();) {
        const auto result = reader.Read(ring.front(), &report);
        ASSERT_NE(result, GrantReader::Result::kGarbled);
        if (result == GrantReader::Result::kLater) break;
        ledgers[ring.front().flow].Take(report);
        ring.pop_front();
      }
      if (!frames_too || frames.empty()) return;
      reader.Received(frames.front());
      ledgers[frames.front().flow].Take(frames.front());
      frames.pop_front();
    };
    for (int step = 0; step < 300; ++step) {
      const FlowId flow = random() % 3;
      auto& [placed, posted] = flows[flow];
      posted = std::min(posted + random() % 7, placed + 64);
      placed = std::min(placed + random() % 4, ledgers[flow].granted);
      const bool grants = random() % 4 != 0;
      const FlowReport report = grants ? GrantOf(flow, placed, posted) : FlowReport{.flow = flow, .placed_through = placed};
      if (const auto records = writer.RecordsOf(report, kMost)) {
        ring.insert(ring.end(), records->begin(), records->end());
      } else {
        writer.Sent(report);
        frames.push_back(report);
      }
      if (random() % 2 == 0) read(random() % 2 == 0);
    }
    for (FlowId flow = 0; flow < 3; ++flow) frames.push_back(GrantOf(flow, flows[flow].first, flows[flow].second));
    while (!frames.empty()) read(true);
    read(false);
    EXPECT_TRUE(ring.empty());
    for (FlowId flow = 0; flow < 3; ++flow) {
      EXPECT_EQ(ledgers[flow].granted, flows[flow].second) << seed;
      EXPECT_EQ(ledgers[flow].acked, flows[flow].first) << seed;
    }
  }
}

}  // namespace
}  // namespace r2cc::net::verbs
