#include "netplugin/transport/verbs/queue_pair.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/flow/tuning.h"
#include "netplugin/transport/verbs/fake_control_thread.h"
#include "netplugin/transport/verbs/fake_types.h"
#include "netplugin/transport/verbs/record_channel.h"

namespace r2cc::net::verbs {
namespace {

constexpr Call kMakes[] = {Call::kCreateCompletionQueue, Call::kRegister, Call::kCreateQueuePair, Call::kInit, Call::kPostReceive};
constexpr Call kJoins[] = {Call::kReadyToReceive, Call::kReadyToSend};

class QueuePairTest : public testing::Test {
 protected:
  struct End {
    std::unique_ptr<FakeVerbs> fake;
    std::unique_ptr<FaultyVerbs> faulty;
    std::shared_ptr<Device> device;
    std::shared_ptr<Domain> domain;
    std::unique_ptr<QueuePair> pair;
    std::vector<std::string> received;
    std::vector<uint32_t> marks;
    uint64_t retired = 0;
    std::vector<Status> failed;
  };
  QueuePairTest() : fabric_(&time_, {.placement_late_one_in = 8, .placement_late_most = 5 * kNanosPerMs}) {
    for (int host = 0; host < 2; ++host) {
      fabric_.AddDevice(host, "mlx5_0");
      End& end = ends_[host];
      end.fake = std::make_unique<FakeVerbs>(&fabric_, host);
      end.faulty = std::make_unique<FaultyVerbs>(end.fake.get());
      end.device = Device::Open(end.faulty.get(), {"mlx5_0", "mlx5_core", 1}, std::make_unique<FakeControlThread>(&time_), &error_);
      int failed = 0;
      end.domain = Domain::Allocate(end.device, &failed);
      end.pair = std::make_unique<QueuePair>(end.domain, QueuePairOptions{.number = 7, .psn = 0x1234567u + static_cast<uint32_t>(host)});
    }
  }
  void Join() {
    for (End& end : ends_) ASSERT_TRUE(end.pair->Create(&error_)) << error_;
    for (int host = 0; host < 2; ++host) ASSERT_TRUE(ends_[host].pair->Join(ends_[1 - host].pair->offer(), &error_)) << error_;
  }
  bool Poll(int host) {
    End& end = ends_[host];
    return end.pair->Poll([&end](const QueuePair::Event& event) {
      switch (event.kind) {
        case QueuePair::Event::Kind::kControl: end.received.emplace_back(event.bytes.begin(), event.bytes.end()); break;
        case QueuePair::Event::Kind::kMark: end.marks.push_back(event.immediate); break;
        case QueuePair::Event::Kind::kRetired: end.retired = event.through; break;
        case QueuePair::Event::Kind::kFailed: end.failed.push_back(event.status); break;
      }
      return true;
    });
  }
  int Send(int host, const std::string& text) {
    return ends_[host].pair->SendControl(1, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }

  FakeTimeline time_;
  FakeFabric fabric_;
  std::string error_;
  End ends_[2];
};

TEST_F(QueuePairTest, ControlMessagesGoBothWaysForAsLongAsBothEndsPoll) {
  Join();
  RecordChannel records[] = {{ends_[0].pair.get(), 0}, {ends_[1].pair.get(), 0}};
  Record none;
  int sent[2] = {};
  for (int round = 0; round < 2000; ++round) {
    for (int host = 0; host < 2; ++host)
      if (ends_[host].pair->CanSendControl() && Send(host, std::to_string(sent[host])) == 0) ++sent[host];
    time_.RunFor(20'000);
    for (int host = 0; host < 2; ++host) {
      ASSERT_TRUE(Poll(host));
      ASSERT_EQ(records[host].Next(&none), RecordChannel::Came::kNothing);
      ASSERT_EQ(records[host].ReturnCredit(), 0);
    }
  }
  time_.RunFor(kNanosPerSecond);
  for (int host = 0; host < 2; ++host) {
    ASSERT_TRUE(Poll(host));
    const auto& received = ends_[host].received;
    EXPECT_GT(sent[1 - host], 1000);
    ASSERT_EQ(received.size(), static_cast<size_t>(sent[1 - host]));
    for (size_t i = 0; i < received.size(); ++i) EXPECT_EQ(received[i], std::to_string(i));
    EXPECT_TRUE(ends_[host].failed.empty());
  }
}

// Else each later one would end what came so many before it: a link with little on its way would wait for its next ping.
TEST_F(QueuePairTest, ACompletionThatTheDeviceHasLostEndsWithTheNext) {
  Join();
  fabric_.StallDevice(0, "mlx5_0", FakeStall::kCompletesNothing);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Send(0, "lost"), 0);
  time_.RunFor(kNanosPerMs);
  ASSERT_TRUE(Poll(0));
  EXPECT_EQ(ends_[0].retired, 0u);
  fabric_.StallDevice(0, "mlx5_0", FakeStall::kNone);
  ASSERT_EQ(Send(0, "heard"), 0);
  time_.RunFor(kNanosPerMs);
  ASSERT_TRUE(Poll(0));
  EXPECT_EQ(ends_[0].retired, ends_[0].pair->posted());
  EXPECT_FALSE(ends_[0].pair->awaits());
}

// Who is not polled is never sent more than it has receives for: no message ever finds none.
TEST_F(QueuePairTest, CreditNeverExceedsWhatIsPosted) {
  Join();
  RecordChannel records[] = {{ends_[0].pair.get(), 0}, {ends_[1].pair.get(), 0}};
  Record none;
  int sent = 0;
  for (int i = 0; i < 1000; ++i) {
    for (; ends_[0].pair->CanSendControl() && Send(0, "x") == 0;) ++sent;
    time_.RunFor(100'000);
    ASSERT_TRUE(Poll(0));
  }
  EXPECT_EQ(sent, static_cast<int>(kReceives));
  EXPECT_TRUE(ends_[0].failed.empty());
  // One way alone: what returns the credit is no answer to anything.
  for (int i = 0; i < 1000; ++i) {
    for (; ends_[0].pair->CanSendControl() && Send(0, "x") == 0;) ++sent;
    time_.RunFor(100'000);
    for (int host = 0; host < 2; ++host) ASSERT_TRUE(Poll(host));
    ASSERT_EQ(records[1].ReturnCredit(), 0);
    ASSERT_EQ(records[0].Next(&none), RecordChannel::Came::kNothing);
  }
  EXPECT_GT(sent, 1000);
}

TEST_F(QueuePairTest, WritesAreRetiredAndMarksCome) {
  Join();
  std::vector<std::byte> data(1000, std::byte{9});
  std::vector<std::byte> target(1000);
  MemoryRegion own, theirs;
  ASSERT_EQ(ends_[0].fake->Register(ends_[0].domain->id(), data.data(), data.size(), kLocalWrite, &own), 0);
  ASSERT_EQ(ends_[1].fake->Register(ends_[1].domain->id(), target.data(), target.size(), kLocalWrite | kRemoteWrite, &theirs), 0);
  const Segment segment{data.data(), 1000, own.local_key};
  for (uint32_t i = 0; i < 50; ++i) {
    SendRequest request{.kind = SendKind::kWriteWithImmediate, .segments = std::span(&segment, 1)};
    request.remote_address = reinterpret_cast<uintptr_t>(target.data());
    request.remote_key = theirs.remote_key;
    request.immediate = i;
    ASSERT_EQ(ends_[0].pair->Write(std::span(&request, 1), 1, i == 49), 0);
  }
  time_.RunFor(kNanosPerSecond);
  ASSERT_TRUE(Poll(0) && Poll(1));
  EXPECT_EQ(ends_[0].retired, ends_[0].pair->posted());
  EXPECT_EQ(ends_[0].pair->room(), kSends);
  ASSERT_EQ(ends_[1].marks.size(), 50u);
  for (uint32_t i = 0; i < 50; ++i) EXPECT_EQ(ends_[1].marks[i], i);
  EXPECT_EQ(target, data);
}

// What nobody asked to be told of is told once in so many, and its place in the queue is free again then.
TEST_F(QueuePairTest, AFixedShareOfWritesIsSignaled) {
  Join();
  for (uint32_t i = 1; i <= 10 * kSends; ++i) {
    SendRequest request{.kind = SendKind::kWrite};
    ASSERT_GT(ends_[0].pair->room(), 0u) << i;
    ASSERT_EQ(ends_[0].pair->Write(std::span(&request, 1), 0, false), 0);
    time_.RunFor(100'000);
    ASSERT_TRUE(Poll(0));
    EXPECT_EQ(ends_[0].retired, i - i % tuning::kSignalEvery);
  }
  EXPECT_EQ(ends_[0].fake->counts().completions, 10 * kSends / tuning::kSignalEvery);
}

// A list of any length leaves something that will be told.
TEST_F(QueuePairTest, AFullQueueIsSignaled) {
  Join();
  std::vector<SendRequest> requests(kSends, SendRequest{.kind = SendKind::kWrite});
  ASSERT_EQ(ends_[0].pair->Write(requests, 0, false), 0);
  EXPECT_EQ(ends_[0].pair->room(), 0u);
  time_.RunFor(kNanosPerSecond);
  ASSERT_TRUE(Poll(0));
  EXPECT_EQ(ends_[0].pair->room(), kSends);
}

TEST_F(QueuePairTest, EachFailedStepHasAnErrorAndLeavesNothingBehind) {
  for (const Call call : kMakes) {
    ends_[0].faulty->FailCall(call, 1, EAGAIN);
    QueuePair pair(ends_[0].domain, {.number = 1});
    EXPECT_FALSE(pair.Create(&error_));
    EXPECT_NE(error_.find("mlx5_0"), std::string::npos) << error_;
  }
  EXPECT_EQ(ends_[0].faulty->injected(), std::size(kMakes));
  for (const Call call : kJoins) {
    QueuePair pair(ends_[0].domain, {.number = 1});
    ASSERT_TRUE(pair.Create(&error_));
    ends_[0].faulty->FailCall(call, 1, EAGAIN);
    EXPECT_FALSE(pair.Join(pair.offer(), &error_));
  }
  QueuePair other(ends_[0].domain, {.number = 1});
  ASSERT_TRUE(other.Create(&error_));
  Offer infiniband = other.offer();
  infiniband.address.link_layer = LinkLayer::kInfiniBand;
  EXPECT_FALSE(other.Join(infiniband, &error_));
}

TEST_F(QueuePairTest, LeavesNothingBehind) {
  {
    QueuePair pair(ends_[0].domain, {.number = 1});
    ASSERT_TRUE(pair.Create(&error_));
    EXPECT_EQ(ends_[0].fake->Close(ends_[0].device->context()), EBUSY);
  }
  ends_[0].pair.reset();
  EXPECT_EQ(ends_[0].fake->Close(ends_[0].device->context()), 0);
}

TEST_F(QueuePairTest, IsFencedByAReceiveOfTheFences) {
  Join();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Send(0, "x"), 0);
  time_.RunFor(100'000);
  ASSERT_TRUE(Poll(1));
  auto fence = ends_[1].pair->NewFence(nullptr);
  for (int i = 0; i < 1000; ++i) {
    const auto again = fence->Step(time_.now());
    if (!again) break;
    time_.RunFor(*again);
  }
  EXPECT_EQ(fence->result(), Fence::Result::kProved);
  ends_[1].pair.reset();
  EXPECT_EQ(ends_[1].fake->Close(ends_[1].device->context()), 0);
}

// An error code does not say that the device writes no more: what it may still write stays.
TEST_F(QueuePairTest, MemoryThatTheDeviceMayWriteIsKept) {
  Join();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Send(0, "x"), 0);
  for (const Call call : {Call::kDestroyQueuePair, Call::kDeregister}) ends_[1].faulty->FailCall(call, 1, EIO);
  const std::byte* const place = ends_[1].pair->RecordAt(0).data();
  ends_[1].pair.reset();
  time_.RunFor(100 * kNanosPerMs);
  // Read after it was freed, this is what the sanitizer sees.
  EXPECT_EQ(*place, std::byte{0});
  EXPECT_EQ(ends_[1].faulty->injected(), 2u);
}

TEST_F(QueuePairTest, NeedsNoFenceBeforeItIsJoined) {
  QueuePair pair(ends_[0].domain, {.number = 1});
  ASSERT_TRUE(pair.Create(&error_));
  EXPECT_FALSE(pair.may_place());
  // Whatever the call said.
  ends_[0].faulty->FailCall(Call::kReadyToReceive, 1, EAGAIN);
  EXPECT_FALSE(pair.Join(pair.offer(), &error_));
  EXPECT_TRUE(pair.may_place());
}

}  // namespace
}  // namespace r2cc::net::verbs
