#include "netplugin/transport/verbs/record_channel.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "netplugin/transport/verbs/fake_control_thread.h"
#include "netplugin/transport/verbs/fake_types.h"

namespace r2cc::net::verbs {
namespace {

constexpr uint32_t kTag = 0x5eed;
using Came = RecordChannel::Came;

// End 0 reads what end 1 writes.
class RecordChannelTest : public testing::Test {
 protected:
  struct End {
    std::unique_ptr<FakeVerbs> fake;
    std::shared_ptr<Device> device;
    std::unique_ptr<QueuePair> pair;
    std::unique_ptr<RecordChannel> records;
  };
  RecordChannelTest() : fabric_(&time_, {.placement_late_one_in = 8, .placement_late_most = 5 * kNanosPerMs}) {
    for (int host = 0; host < 2; ++host) {
      fabric_.AddDevice(host, "mlx5_0");
      End& end = ends_[host];
      end.fake = std::make_unique<FakeVerbs>(&fabric_, host);
      end.device = Device::Open(end.fake.get(), {"mlx5_0", "mlx5_core", 1}, std::make_unique<FakeControlThread>(&time_), &error_);
      int failed = 0;
      end.pair = std::make_unique<QueuePair>(Domain::Allocate(end.device, &failed),
                                             QueuePairOptions{.number = 7, .psn = 0x1234567u + static_cast<uint32_t>(host)});
      EXPECT_TRUE(end.pair->Create(&error_)) << error_;
      end.records = std::make_unique<RecordChannel>(end.pair.get(), kTag);
    }
    for (int host = 0; host < 2; ++host) EXPECT_TRUE(ends_[host].pair->Join(ends_[1 - host].pair->offer(), &error_)) << error_;
  }
  void Poll() {
    time_.RunFor(10 * kNanosPerMs);
    for (End& end : ends_) ASSERT_TRUE(end.pair->Poll([](const auto& event) { return event.kind != QueuePair::Event::Kind::kFailed; }));
  }
  // Acknowledgements of the next messages.
  void Write(uint32_t count) {
    std::vector<Record> records(count);
    for (Record& record : records) record = {.kind = RecordKind::kAck, .flow = 1, .placed_through = ++sent_};
    size_t written = 0;
    ASSERT_EQ(ends_[1].records->Write(records, &written), 0);
    ASSERT_EQ(written, count);
  }
  uint32_t ReadAll() {
    uint32_t count = 0;
    for (Record record; ends_[0].records->Next(&record) == Came::kRecord; ++count) {
      EXPECT_EQ(record.placed_through, ++received_);
      ends_[0].records->Took(record);
    }
    return count;
  }

  FakeTimeline time_;
  FakeFabric fabric_;
  std::string error_;
  End ends_[2];
  MessageId sent_ = 0, received_ = 0;
};

TEST_F(RecordChannelTest, RecordsComeInOrderAndOnce) {
  Write(1);
  Write(kSlots - 1);
  EXPECT_EQ(ends_[1].records->free(), 0u);
  Poll();
  EXPECT_EQ(ReadAll(), kSlots);
  EXPECT_EQ(ReadAll(), 0u);
  // No receive was used up at the other end, and it was told of nothing.
  EXPECT_EQ(ends_[0].fake->counts().completions, 0u);
  EXPECT_EQ(ends_[1].pair->credit(), kReceives);
}

TEST_F(RecordChannelTest, ARecordIsThereUntilItIsTaken) {
  Write(1);
  Poll();
  Record record;
  EXPECT_EQ(ends_[0].records->Next(&record), Came::kRecord);
  EXPECT_EQ(ends_[0].records->Next(&record), Came::kRecord);
  EXPECT_EQ(ReadAll(), 1u);
}

// Round the ring, for ever: what was read is told, seldom, and the writer has room again.
TEST_F(RecordChannelTest, TheReaderReportsWhatItHasRead) {
  Record none;
  for (uint32_t i = 0; i < 20 * kSlots; ++i) {
    ASSERT_GT(ends_[1].records->free(), 0u) << i;
    Write(1);
    Poll();
    ASSERT_EQ(ReadAll(), 1u) << i;
    ASSERT_EQ(ends_[0].records->ReturnCredit(), 0);
    Poll();
    EXPECT_EQ(ends_[1].records->Next(&none), Came::kNothing);
  }
  EXPECT_EQ(ends_[0].fake->counts().sends, 40u) << "one write for each half of the ring";
}

TEST_F(RecordChannelTest, CreditGoesWithEachRecordAndAloneWhenMuchIsDue) {
  Record none;
  // All receives of end 1 are used up, and posted again.
  const uint8_t byte = 1;
  for (uint32_t i = 0; i < kReceives; ++i) {
    ASSERT_EQ(ends_[0].pair->SendControl(1, std::span(&byte, 1)), 0);
    Poll();
  }
  EXPECT_EQ(ends_[0].pair->credit(), 0u);
  Write(1);
  Poll();
  ASSERT_EQ(ReadAll(), 1u);
  EXPECT_EQ(ends_[0].pair->credit(), kReceives);
  const auto before = ends_[1].fake->counts().sends;
  for (uint32_t i = 0; i < kReceives; ++i) {
    ASSERT_EQ(ends_[0].pair->SendControl(1, std::span(&byte, 1)), 0);
    Poll();
    ASSERT_EQ(ends_[1].records->ReturnCredit(), 0);
  }
  Poll();
  EXPECT_EQ(ends_[0].records->Next(&none), Came::kNothing);
  EXPECT_EQ(ends_[0].pair->credit(), kReceives);
  EXPECT_EQ(ends_[1].fake->counts().sends, before + 2);
}

// The status slot is not written over before what was written there has ended: plain writes may overtake one another.
TEST_F(RecordChannelTest, AStatusWaitsForTheOneBefore) {
  const uint8_t byte = 1;
  const auto use_up_half = [&] {
    for (uint32_t i = 0; i < kReceives / 2; ++i) {
      ASSERT_EQ(ends_[0].pair->SendControl(1, std::span(&byte, 1)), 0);
      Poll();
    }
  };
  use_up_half();
  const auto before = ends_[1].fake->counts().sends;
  fabric_.SetSilent({0, "mlx5_0", 1}, true);
  ASSERT_EQ(ends_[1].records->ReturnCredit(), 0);
  EXPECT_EQ(ends_[1].fake->counts().sends, before + 1);
  time_.RunFor(10 * kNanosPerMs);
  fabric_.SetSilent({0, "mlx5_0", 1}, false);
  // It is on its way again, and its end not seen yet.
  time_.RunFor(200 * kNanosPerMs);
  for (uint32_t i = 0; i < kReceives / 2; ++i) ASSERT_EQ(ends_[0].pair->SendControl(1, std::span(&byte, 1)), 0) << i;
  EXPECT_EQ(ends_[1].records->ReturnCredit(), 0);
  EXPECT_EQ(ends_[1].fake->counts().sends, before + 1);
}

TEST_F(RecordChannelTest, ARecordThatWasWrittenOverIsGarbled) {
  Write(kSlots);
  Poll();
  // As a peer that has lost count.
  const Record next{.kind = RecordKind::kAck, .number = kSlots + 1, .flow = 1, .placed_through = 9};
  const RecordData data = Encode(next, kTag);
  const Segment segment{data.data(), data.size(), 0};
  const RemoteMemory to = ends_[1].pair->RemoteRecord(1 + (kSlots + 1) % kSlots);
  SendRequest request{.kind = SendKind::kWrite, .inlined = true, .segments = std::span(&segment, 1), .remote_address = to.address};
  request.remote_key = to.key;
  ASSERT_EQ(ends_[1].pair->Write(std::span(&request, 1), 0, true), 0);
  Poll();
  Record record;
  EXPECT_EQ(ends_[0].records->Next(&record), Came::kGarbled);
}

TEST_F(RecordChannelTest, ARecordOfAnotherSessionIsNone) {
  RecordChannel other(ends_[1].pair.get(), kTag + 1);
  std::vector<Record> records = {{.kind = RecordKind::kAck, .flow = 1, .placed_through = 5}};
  size_t written = 0;
  ASSERT_EQ(other.Write(records, &written), 0);
  Poll();
  EXPECT_EQ(ReadAll(), 0u);
}

TEST_F(RecordChannelTest, RecordsWaitForRoomInTheSendQueue) {
  std::vector<SendRequest> requests(kSends - 1, SendRequest{.kind = SendKind::kWrite});
  ASSERT_EQ(ends_[1].pair->Write(requests, 0, false), 0);
  std::vector<Record> records(2, {.kind = RecordKind::kAck, .flow = 1, .placed_through = 5});
  size_t written = 0;
  ASSERT_EQ(ends_[1].records->Write(records, &written), 0);
  EXPECT_EQ(written, 1u);
  ASSERT_EQ(ends_[1].records->Write(std::span(records).subspan(1), &written), 0);
  EXPECT_EQ(written, 0u);
}

}  // namespace
}  // namespace r2cc::net::verbs
