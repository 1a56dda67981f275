#include "netplugin/transport/verbs/link_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/fake_verbs.h"
#include "base/core/verbs/faulty_verbs.h"
#include "netplugin/transport/verbs/fake_control_thread.h"

namespace r2cc::net::verbs {
namespace {

using plan::EvidenceCause;

constexpr uint32_t kTag = 0x5eed;

struct FakeClock final : Clock {
  explicit FakeClock(const FakeTimeline* of) : time(of) {}
  Nanos Now() const override { return time->now(); }
  const FakeTimeline* const time;
};

// Knows what queue pairs were told.
struct RecordingVerbs final : FaultyVerbs {
  using FaultyVerbs::FaultyVerbs;
  int MakeReadyToReceive(QueuePairId pair, const ReadyToReceive& attributes) override {
    receive = attributes;
    return FaultyVerbs::MakeReadyToReceive(pair, attributes);
  }
  int MakeReadyToSend(QueuePairId pair, const ReadyToSend& attributes) override {
    send = attributes;
    return FaultyVerbs::MakeReadyToSend(pair, attributes);
  }
  ReadyToReceive receive;
  ReadyToSend send;
};

// A link of nothing but its core, and its owner.
class CoreEnd final : public LinkOwner, public LinkCore::User {
 public:
  std::shared_ptr<void> KeepAlive() override { return std::make_shared<int>(0); }
  void Heard(const LinkName&, const Frame&) override {}
  void Trouble(const LinkName&, EvidenceCause cause) override { troubles.push_back(cause); }
  void LinkClosed(LinkName, bool ok) override { closed.push_back(ok); }
  void Ready(const LinkName&) override {}
  bool WithLock(FunctionRef<bool()> tell, FunctionRef<bool(bool)>) override {
    tell();
    return true;
  }
  void Created() override { created = true; }
  void Joined() override { joined = true; }
  void Heard(const Frame& frame) override { frames.push_back(frame); }
  bool IsOpen(FlowId) override { return true; }
  void Credited() override { ++credited; }
  bool Mark(uint32_t, uint32_t) override { return false; }
  void Retired(uint64_t) override {}
  void ProofCame(uint32_t crc) override { proofs.push_back(crc); }

  std::unique_ptr<FakeVerbs> verbs;  // outlives the device
  std::unique_ptr<RecordingVerbs> faulty;
  VerbsShared shared;
  std::shared_ptr<LinkHistory> history = std::make_shared<LinkHistory>();
  std::unique_ptr<LinkCore> core;
  bool created = false, joined = false;
  int credited = 0;
  std::vector<EvidenceCause> troubles;
  std::vector<bool> closed;
  std::vector<Frame> frames;
  std::vector<uint32_t> proofs;
};

// End 0 is the initiator's.
class LinkCoreTest : public testing::Test {
 protected:
  LinkCoreTest() : clock_(&time_), fabric_(&time_) {
    for (int host = 0; host < 2; ++host) {
      CoreEnd& end = ends_[host];
      fabric_.AddDevice(host, "mlx5_0");
      end.verbs = std::make_unique<FakeVerbs>(&fabric_, host);
      end.shared.clock = &clock_;
      end.shared.random = [this] { return static_cast<uint32_t>(time_.Random()); };
      end.shared.log = [this](LogLevel, const std::string& line) { lines_.push_back(line); };
      std::string error;
      end.faulty = std::make_unique<RecordingVerbs>(end.verbs.get());
      const auto device = Device::Open(end.faulty.get(), {"mlx5_0", "mlx5_core", 1}, std::make_unique<FakeControlThread>(&time_), &error);
      EXPECT_NE(device, nullptr) << error;
      int failed = 0;
      end.shared.rails.push_back({Domain::Allocate(device, &failed), 1, {}});
      // As the table of the job's memory does.
      end.shared.keys_revoked = [this, host](uint16_t) {
        ++revoked_;
        if (RegisteredAt(host)) Register(host);
      };
    }
  }
  // As a transport ends: links are closed, and jobs that are not done by then are dropped, as they hold the device that holds them.
  ~LinkCoreTest() override {
    for (CoreEnd& end : ends_)
      if (end.core != nullptr && end.closed.empty()) end.core->Close();
    time_.RunFor(kNanosPerSecond);
    for (CoreEnd& end : ends_) {
      end.core = nullptr;
      for (const auto& rail : end.shared.rails) rail.device()->control()->Stop();
    }
  }
  void Make(int host, uint32_t tag = kTag) {
    CoreEnd& end = ends_[host];
    const auto of = host == 0 ? LinkCore::End::kSends : LinkCore::End::kReceives;
    end.core =
        std::make_unique<LinkCore>(&end.shared, SessionKey{1, tag}, LinkName{.link = 3, .incarnation = 7}, of, end.history, &end, &end);
    end.core->Create();
    time_.RunFor(kNanosPerMs);
    ASSERT_TRUE(end.created);
  }
  void JoinBoth(uint32_t tag_of_initiator = kTag) {
    Make(0, tag_of_initiator);
    Make(1);
    for (int host = 0; host < 2; ++host) ends_[host].core->Join(ends_[1 - host].core->pair()->offer());
    time_.RunFor(kNanosPerMs);
    ASSERT_TRUE(ends_[0].joined && ends_[1].joined);
    ends_[0].core->OtherIsReady();
  }
  // Memory of the job's at the end.
  void Register(int host) {
    std::string error;
    VerbsShared& shared = ends_[host].shared;
    EXPECT_EQ(shared.regions.Register(shared.rails[0].domain, 0, {.id = kRegion, .base = job_.data(), .bytes = job_.size()}, &key_, &error),
              0)
        << error;
  }
  bool RegisteredAt(int host) const { return ends_[host].shared.regions.size() > 0; }
  void LookFor(Nanos time) {
    for (const Nanos end = time_.now() + time; time_.now() < end; time_.RunFor(kNanosPerMs))
      for (CoreEnd& one : ends_)
        if (one.core != nullptr) one.core->Look();
  }
  void Say(int host, const Frame& frame) {
    ends_[host].core->Queue(frame);
    EXPECT_TRUE(ends_[host].core->Flush());
  }

  FakeTimeline time_;
  const FakeClock clock_;
  FakeFabric fabric_;
  CoreEnd ends_[2];
  std::vector<std::string> lines_;
  static constexpr net::RegionId kRegion = 4;
  std::vector<std::byte> job_ = std::vector<std::byte>(1 << 20);
  uint32_t key_ = 0;
  int revoked_ = 0;
};

TEST_F(LinkCoreTest, ALongFrameComesWhole) {
  JoinBoth();
  Frame frame{.type = FrameType::kGrant, .flow = 5, .message = 9};
  for (uint64_t i = 0; i < 1000; ++i) frame.numbers.push_back(i * 77);
  Say(0, frame);
  Say(0, {.type = FrameType::kPing, .number = 4});
  LookFor(5 * kNanosPerMs);
  ASSERT_EQ(ends_[1].frames.size(), 2u);
  EXPECT_EQ(ends_[1].frames[0].numbers, frame.numbers);
  EXPECT_EQ(ends_[1].frames[1].number, 4u);
}

TEST_F(LinkCoreTest, AnAcceptorSpeaksWhenItWasSpokenTo) {
  JoinBoth();
  Say(1, {.type = FrameType::kPing, .number = 1});
  EXPECT_FALSE(ends_[1].core->flushed());
  Say(0, {.type = FrameType::kPing, .number = 2});
  LookFor(5 * kNanosPerMs);
  EXPECT_TRUE(ends_[1].core->flushed());
  ASSERT_EQ(ends_[0].frames.size(), 1u);
  EXPECT_EQ(ends_[0].frames[0].number, 1u);
}

// An initiator whose answer was lost, or who is gone, says nothing, and no error does.
TEST_F(LinkCoreTest, AnInitiatorThatNeverSpeaksIsGivenUp) {
  JoinBoth();
  LookFor(4900 * kNanosPerMs);
  EXPECT_TRUE(ends_[1].troubles.empty());
  LookFor(200 * kNanosPerMs);
  EXPECT_EQ(ends_[1].troubles, std::vector{EvidenceCause::kSilence});
  EXPECT_TRUE(ends_[0].troubles.empty());
}

TEST_F(LinkCoreTest, WhatIsRepeatedAnywayCostsNoMemory) {
  JoinBoth();
  for (uint64_t i = 0; i < 1000; ++i) Say(1, {.type = FrameType::kPing, .number = i});
  Say(1, {.type = FrameType::kRailUp, .number = 6});
  Say(0, {.type = FrameType::kPing});
  LookFor(20 * kNanosPerMs);
  ASSERT_LT(ends_[0].frames.size(), 300u);
  EXPECT_EQ(ends_[0].frames.back().type, FrameType::kRailUp);
  // And they go again once there is no backlog.
  Say(1, {.type = FrameType::kPing, .number = 7777});
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(ends_[0].frames.back().number, 7777u);
}

TEST_F(LinkCoreTest, MoreThanThereIsCreditForComesInOrder) {
  JoinBoth();
  for (uint64_t i = 0; i < 1000; ++i) Say(0, {.type = FrameType::kRailUp, .number = i});
  LookFor(50 * kNanosPerMs);
  ASSERT_EQ(ends_[1].frames.size(), 1000u);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(ends_[1].frames[i].number, i);
  EXPECT_TRUE(ends_[0].troubles.empty() && ends_[1].troubles.empty());
}

// A grant costs the other end neither a receive nor a completion.
TEST_F(LinkCoreTest, GrantsAndAcknowledgementsGoAsRecords) {
  JoinBoth();
  Say(0, {.type = FrameType::kPing});
  LookFor(5 * kNanosPerMs);
  const auto before = ends_[0].verbs->counts().completions;
  for (MessageId message = 0; message < 1000; ++message) {
    Say(1, {.type = FrameType::kGrant, .flow = 5, .message = message, .numbers = {message + 77}});
    LookFor(2 * kNanosPerMs);
    ASSERT_EQ(ends_[0].frames.size(), message + 1);
    EXPECT_EQ(ends_[0].frames.back().message, message);
    EXPECT_EQ(ends_[0].frames.back().numbers, std::vector<uint64_t>{message + 77});
  }
  Say(1, {.type = FrameType::kAck, .flow = 5, .message = 1000});
  LookFor(2 * kNanosPerMs);
  EXPECT_EQ(ends_[0].frames.back().type, FrameType::kAck);
  // What it was told of is its own words on what it has read.
  EXPECT_LE(ends_[0].verbs->counts().completions - before, 1000 / (kSlots / 2) + 1);
  EXPECT_TRUE(ends_[0].troubles.empty() && ends_[1].troubles.empty());
}

// An initiator that looks at nothing for a while: its ring is full, and frames wait for credit. All of it is heard in the end.
TEST_F(LinkCoreTest, GrantsGoAsFramesWhenTheRingIsFull) {
  JoinBoth();
  Say(0, {.type = FrameType::kPing});
  LookFor(5 * kNanosPerMs);
  constexpr FlowId kFlows = 2 * kSlots;
  for (FlowId flow = 1; flow <= kFlows; ++flow) Say(1, {.type = FrameType::kGrant, .flow = flow, .message = 0, .numbers = {flow}});
  for (FlowId flow = 1; flow <= kFlows; ++flow) Say(1, {.type = FrameType::kGrant, .flow = flow, .message = 0, .numbers = {flow, flow}});
  LookFor(50 * kNanosPerMs);
  std::map<FlowId, size_t> granted;
  for (const Frame& frame : ends_[0].frames)
    if (frame.type == FrameType::kGrant) granted[frame.flow] = std::max(granted[frame.flow], frame.numbers.size());
  EXPECT_EQ(granted.size(), kFlows);
  for (const auto& [flow, messages] : granted) EXPECT_EQ(messages, 2u) << flow;
  EXPECT_TRUE(ends_[1].core->flushed());
  EXPECT_TRUE(ends_[0].troubles.empty() && ends_[1].troubles.empty());
}

// Its ring says the second half before it has heard the first, which is a frame.
TEST_F(LinkCoreTest, ARecordThatOvertakesItsFrameWaits) {
  JoinBoth();
  Say(0, {.type = FrameType::kPing});
  LookFor(5 * kNanosPerMs);
  Frame grant{.type = FrameType::kGrant, .flow = 5, .message = 0};
  for (uint64_t i = 0; i < kMessagesPerFlow + 1; ++i) grant.numbers.push_back(100 + i);
  ends_[1].core->Queue(grant);
  grant.message = 2;
  grant.numbers.erase(grant.numbers.begin(), grant.numbers.begin() + 2);
  grant.numbers.push_back(9);
  Say(1, grant);
  for (int i = 0; i < 5000; ++i) {
    time_.RunFor(1'000);
    for (CoreEnd& end : ends_) end.core->Look();
  }
  ASSERT_EQ(ends_[0].frames.back().type, FrameType::kGrant);
  EXPECT_EQ(ends_[0].frames.back().message, 2u);
  EXPECT_EQ(ends_[0].frames.back().numbers, grant.numbers);
  EXPECT_TRUE(ends_[0].troubles.empty());
}

TEST_F(LinkCoreTest, CreditThatIsBackIsTold) {
  JoinBoth();
  const uint8_t byte = 1;
  for (uint32_t i = 0; i < kReceives; ++i) {
    while (ends_[0].core->pair()->room() == 0 || !ends_[0].core->pair()->CanSendWord()) {
      time_.RunFor(kNanosPerMs);
      ends_[0].core->Look();
    }
    ASSERT_EQ(ends_[0].core->pair()->SendWord(1, std::span(&byte, 1)), 0);
  }
  EXPECT_EQ(ends_[0].core->pair()->credit(), 0u);
  const int before = ends_[0].credited;
  LookFor(20 * kNanosPerMs);
  EXPECT_EQ(ends_[0].credited, before + 1);
}

TEST_F(LinkCoreTest, AnUnknownWordIsTroubleOnce) {
  JoinBoth();
  const uint8_t bytes[] = {1, 2, 3};
  ASSERT_EQ(ends_[0].core->pair()->SendWord(9, bytes), 0);
  Say(0, {.type = FrameType::kPing});
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(ends_[1].troubles, std::vector{EvidenceCause::kGarbled});
  EXPECT_TRUE(ends_[1].frames.empty());
}

TEST_F(LinkCoreTest, AFrameOfAnotherSessionIsTrouble) {
  JoinBoth(kTag + 1);
  Say(0, {.type = FrameType::kPing});
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(ends_[1].troubles, std::vector{EvidenceCause::kGarbled});
  EXPECT_TRUE(ends_[1].frames.empty());
}

TEST_F(LinkCoreTest, PartsWithoutAnEndAreTrouble) {
  JoinBoth();
  const std::vector<uint8_t> part(kSlotBytes - 8, 1);
  for (size_t bytes = 0; bytes <= kPacketBytesMax && ends_[1].troubles.empty(); bytes += part.size()) {
    while (!ends_[0].core->pair()->CanSendWord()) LookFor(kNanosPerMs);
    ASSERT_EQ(ends_[0].core->pair()->SendWord(1, part), 0);
  }
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(ends_[1].troubles, std::vector{EvidenceCause::kGarbled});
}

TEST_F(LinkCoreTest, AnOtherLinkLayerIsRefusedWithALine) {
  Make(0);
  Make(1);
  Offer offer = ends_[1].core->pair()->offer();
  offer.address.link_layer = LinkLayer::kInfiniBand;
  ends_[0].core->Join(offer);
  time_.RunFor(kNanosPerMs);
  EXPECT_EQ(ends_[0].troubles, std::vector{EvidenceCause::kLinkDown});
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("link layer"), std::string::npos) << lines_[0];
}

TEST_F(LinkCoreTest, ASmallerMtuAtOneEndIsTheLinks) {
  fabric_.port({1, "mlx5_0", 1})->info.mtu_bytes = 512;
  JoinBoth();
  Say(0, {.type = FrameType::kPing, .number = 3});
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(ends_[1].frames.size(), 1u);
  ASSERT_EQ(lines_.size(), 2u) << "each end says it, once";
  EXPECT_NE(lines_[0].find("the MTU is 1024 here and 512 at the peer; the link uses 512"), std::string::npos) << lines_[0];
  EXPECT_NE(lines_[1].find("the MTU is 512 here and 1024 at the peer; the link uses 512"), std::string::npos) << lines_[1];
}

// A site's traffic class, service level, partition key and retries are those of each queue pair.
TEST_F(LinkCoreTest, ASitesSettingsAreTheLinks) {
  for (CoreEnd& end : ends_) end.shared.site = {.traffic_class = 106, .service_level = 3, .timeout = 20, .retry_cnt = 5};
  JoinBoth();
  for (const CoreEnd& end : ends_) {
    EXPECT_EQ(end.faulty->receive.path.traffic_class, 106);
    EXPECT_EQ(end.faulty->receive.path.service_level, 3);
    EXPECT_EQ(end.faulty->send.timeout, 20);
    EXPECT_EQ(end.faulty->send.retry_cnt, 5);
  }
}

TEST_F(LinkCoreTest, ADeviceThatIsLostIsTroubleAndTheCloseEnds) {
  JoinBoth();
  fabric_.LoseDevice(1, "mlx5_0");
  ends_[1].shared.rails[0].device()->ReadEvents([](uint8_t) {});
  EXPECT_EQ(ends_[1].troubles, std::vector{EvidenceCause::kLinkDown});
  EXPECT_FALSE(ends_[1].core->Close());
  time_.RunFor(100 * kNanosPerMs);
  EXPECT_EQ(ends_[1].closed, std::vector{true});
}

// Packets that are late find nobody: the device of the fake gives numbers that are free to the next who asks.
TEST_F(LinkCoreTest, TheSuccessorHasAnotherNumber) {
  JoinBoth();
  for (int host = 0; host < 2; ++host) {
    CoreEnd& end = ends_[host];
    uint32_t number = end.core->pair()->offer().number;
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(end.core->Close());
      time_.RunFor(100 * kNanosPerMs);
      ASSERT_EQ(end.closed.size(), static_cast<size_t>(i) + 1);
      Make(host);
      EXPECT_NE(std::exchange(number, end.core->pair()->offer().number), end.core->pair()->offer().number);
    }
    end.closed.clear();
  }
}

// Another link took the number meanwhile, so that the device gave the next one out. It is free again.
TEST_F(LinkCoreTest, OnlyTheNumberOfTheOneBeforeIsAvoided) {
  JoinBoth();
  const uint32_t first = ends_[1].core->pair()->offer().number;
  for (const uint32_t expected : {first + 1, first}) {
    EXPECT_FALSE(ends_[1].core->Close());
    time_.RunFor(100 * kNanosPerMs);
    Make(1);
    EXPECT_EQ(ends_[1].core->pair()->offer().number, expected);
  }
  ends_[1].closed.clear();
}

// What the initiator has written reaches the job's memory at the acceptor.
class LinkCoreFenced : public LinkCoreTest {
 protected:
  LinkCoreFenced() { fabric_.options.placement_late_one_in = 4; }
  // `bytes` each, into the job's memory, with an immediate.
  void Write(int count, uint32_t bytes) {
    std::string error;
    VerbsShared& shared = ends_[0].shared;
    uint32_t unused = 0;
    ASSERT_EQ(
        shared.regions.Register(shared.rails[0].domain, 0, {.id = kRegion, .base = from_.data(), .bytes = from_.size()}, &unused, &error),
        0);
    const Segment segment{from_.data(), bytes, *shared.regions.LocalKey(kRegion, 0)};
    for (int i = 0; i < count; ++i) {
      SendRequest request{.kind = SendKind::kWriteWithImmediate, .segments = std::span(&segment, 1)};
      request.remote_address = reinterpret_cast<uintptr_t>(job_.data());
      request.remote_key = key_;
      ASSERT_EQ(ends_[0].core->pair()->Write(std::span(&request, 1), 1, false), 0) << i;
    }
  }
  void Begin(int count, uint32_t bytes, Nanos time) {
    JoinBoth();
    Register(1);
    Write(count, bytes);
    time_.RunFor(time);
  }
  // When LinkClosed(true) comes the memory is the job's: what is written later is late.
  size_t LateBytes(Nanos time) {
    const Nanos end = time_.now() + time;
    while (time_.now() < end && ends_[1].closed.empty()) time_.RunFor(10'000);
    took_ = time - (end - time_.now());
    if (ends_[1].closed != std::vector{true}) return SIZE_MAX;
    std::fill(job_.begin(), job_.end(), std::byte{7});
    time_.RunFor(3 * kNanosPerSecond);
    return job_.size() - static_cast<size_t>(std::count(job_.begin(), job_.end(), std::byte{7}));
  }

  std::vector<std::byte> from_ = std::vector<std::byte>(1 << 20, std::byte{1});
  Nanos took_ = 0;
};

// 128 marks came while nobody polled: a busy processor, a stopped process.
TEST_F(LinkCoreFenced, AllReceivesAreUsedAndNoKeyIsRevoked) {
  Begin(kReceives, 64, 50 * kNanosPerMs);
  EXPECT_FALSE(ends_[1].core->Close());
  EXPECT_EQ(LateBytes(kNanosPerSecond), 0u);
  EXPECT_LT(took_, 5 * kNanosPerMs);
  EXPECT_EQ(revoked_, 0);
  EXPECT_TRUE(ends_[1].shared.regions.LocalKey(kRegion, 0).has_value());
}

// Every call that fails says EIO, as mlx5 does of commands in a bad state. The device lives, and its queue pair takes what comes.
TEST_F(LinkCoreFenced, ErrorCodesOfALivingDeviceAreNoProof) {
  Begin(8, 1 << 16, 200'000);
  ends_[1].faulty->FailCall(Call::kError, 1, EIO);
  ends_[1].faulty->FailCall(Call::kDestroyQueuePair, 1, EIO, 1'000);
  EXPECT_FALSE(ends_[1].core->Close());
  EXPECT_EQ(LateBytes(kNanosPerSecond), 0u);
  EXPECT_EQ(revoked_, 1);
  EXPECT_FALSE(ends_[1].shared.rails[0].device()->lost());
}

// The device gives released keys out again, as mlx5 does. The queue pair that could not be ended must not reach memory by them.
TEST_F(LinkCoreFenced, WhatIsRegisteredAgainIsOutOfTheOldOnesReach) {
  fabric_.options.reuse_keys = true;
  Begin(8, 1 << 16, 200'000);
  ends_[1].faulty->FailCall(Call::kError, 1, EINVAL);
  ends_[1].faulty->FailCall(Call::kDestroyQueuePair, 1, EINVAL, 1'000);
  const uint32_t before = key_;
  EXPECT_FALSE(ends_[1].core->Close());
  EXPECT_EQ(LateBytes(kNanosPerSecond), 0u);
  EXPECT_EQ(revoked_, 1);
  EXPECT_EQ(key_, before) << "the fake does not do what it is here for";
}

// In the old domain nothing is reached any more: the other links of the rail end, and begin again in the new one.
TEST_F(LinkCoreFenced, OtherLinksOfTheRailHearThatItsDomainIsRevoked) {
  Begin(1, 64, kNanosPerMs);
  int troubles = 0;
  VerbsShared& shared = ends_[1].shared;
  shared.rails[0].device()->Listen({1, {}, {}, shared.rails[0].domain.get(), [&](Device::Trouble) { ++troubles; }});
  const auto domain = shared.rails[0].domain;
  ends_[1].faulty->FailCall(Call::kError, 1, EINVAL);
  EXPECT_FALSE(ends_[1].core->Close());
  EXPECT_EQ(LateBytes(kNanosPerSecond), 0u);
  EXPECT_EQ(troubles, 1);
  EXPECT_NE(shared.rails[0].domain, domain);
}

TEST_F(LinkCoreFenced, SuccessOfADeviceInAnInternalErrorIsNoProof) {
  Begin(8, 1 << 16, 200'000);
  bool internal_error = true;
  for (const Call call : {Call::kError, Call::kReset, Call::kDestroyQueuePair, Call::kDeregister})
    ends_[1].faulty->PretendWhile(call, &internal_error);
  ends_[1].faulty->FailWhile(Call::kQueryPort, &internal_error, EIO);
  EXPECT_FALSE(ends_[1].core->Close());
  time_.RunFor(2 * kNanosPerSecond);
  EXPECT_EQ(ends_[1].closed, std::vector{false});
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("device=mlx5_0"), std::string::npos) << lines_[0];
  internal_error = false;
}

// A join that failed, or an offer that nobody took.
TEST_F(LinkCoreFenced, AQueuePairThatNeverWasJoinedNeedsNoFence) {
  Make(1);
  Register(1);
  ends_[1].faulty->FailCall(Call::kError, 1, EINVAL, 1'000);
  EXPECT_FALSE(ends_[1].core->Close());
  EXPECT_EQ(LateBytes(kNanosPerSecond), 0u);
  EXPECT_LT(took_, kNanosPerMs);
  EXPECT_EQ(revoked_, 0);
}

// It writes no memory of the job's.
TEST_F(LinkCoreFenced, TheInitiatorHasNoSecondLine) {
  JoinBoth();
  Register(0);
  ends_[0].faulty->FailCall(Call::kError, 1, EINVAL);
  EXPECT_FALSE(ends_[0].core->Close());
  time_.RunFor(100 * kNanosPerMs);
  EXPECT_EQ(ends_[0].closed, std::vector{true});
  EXPECT_EQ(revoked_, 0);
  EXPECT_TRUE(ends_[0].shared.regions.LocalKey(kRegion, 0).has_value());
}

// The next queue pair is not made while somebody waits for the end of this one.
TEST_F(LinkCoreFenced, NothingIsMadeDuringAFence) {
  JoinBoth();
  for (const Call call : {Call::kCreateQueuePair, Call::kRegister}) ends_[1].faulty->SlowCall(call, 5 * kNanosPerSecond);
  const uint64_t before = ends_[1].faulty->injected();
  EXPECT_FALSE(ends_[1].core->Close());
  EXPECT_EQ(LateBytes(kNanosPerSecond), 0u);
  EXPECT_EQ(ends_[1].faulty->injected(), before);
}

TEST_F(LinkCoreTest, AfterItsCloseNothingIsTold) {
  JoinBoth();
  Say(0, {.type = FrameType::kPing});
  EXPECT_FALSE(ends_[1].core->Close());
  EXPECT_EQ(ends_[1].core->pair(), nullptr);
  LookFor(100 * kNanosPerMs);
  EXPECT_TRUE(ends_[1].frames.empty());
  EXPECT_TRUE(ends_[1].troubles.empty());
  EXPECT_EQ(ends_[1].closed, std::vector{true});
}

}  // namespace
}  // namespace r2cc::net::verbs
