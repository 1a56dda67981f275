// Builds both ends of a link that has only its core, over the fake fabric: for the tests of the core, and of its fence.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_CORE_ENDS_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_CORE_ENDS_H_

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

#include "netplugin/transport/verbs/fake_control_thread.h"
#include "netplugin/transport/verbs/fake_types.h"
#include "netplugin/transport/verbs/link_core.h"

namespace r2cc::net::verbs {

using plan::EvidenceCause;

constexpr uint32_t kTag = 0x5eed;

struct TimelineClock final : Clock {
  explicit TimelineClock(const FakeTimeline* of) : time(of) {}
  Nanos Now() const override { return time->now(); }
  const FakeTimeline* const time;
};

// Records the attributes that queue pairs got.
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

// A link that has only its core, and its owner.
class CoreEnd final : public LinkOwner, public LinkCore::User {
 public:
  std::shared_ptr<void> KeepAlive() override { return std::make_shared<int>(0); }
  void FrameReceived(const LinkName&, const Frame&) override {}
  void Trouble(const LinkName&, EvidenceCause cause) override { troubles.push_back(cause); }
  void LinkClosed(LinkName, bool ok) override { closed.push_back(ok); }
  void Ready(const LinkName&) override {}
  bool WithLock(FunctionRef<bool()> report, FunctionRef<bool(bool)>) override {
    report();
    return true;
  }
  void Created() override { created = true; }
  void Joined() override { joined = true; }
  void FrameReceived(const Frame& frame) override { frames.push_back(frame); }
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
      // Does what the table of the job's memory does.
      end.shared.keys_revoked = [this, host](uint16_t) {
        ++revoked_;
        if (std::exchange(registered_[host], false)) Register(host);
      };
    }
  }
  // Ends like a transport: links are closed, and jobs that are not done by then are dropped, because they hold the device that holds them.
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
    registered_[host] = true;
    EXPECT_EQ(shared.regions.Register(shared.rails[0].domain, 0, {.id = kRegion, .base = job_.data(), .bytes = job_.size()}, &key_, &error),
              0)
        << error;
  }
  void LookFor(Nanos time) {
    for (const Nanos end = time_.now() + time; time_.now() < end; time_.RunFor(kNanosPerMs))
      for (CoreEnd& one : ends_)
        if (one.core != nullptr) one.core->Look();
  }
  void Send(int host, const Frame& frame) {
    ends_[host].core->Queue(frame);
    EXPECT_TRUE(ends_[host].core->Flush());
  }

  FakeTimeline time_;
  const TimelineClock clock_;
  FakeFabric fabric_;
  CoreEnd ends_[2];
  std::vector<std::string> lines_;
  static constexpr net::RegionId kRegion = 4;
  std::vector<std::byte> job_ = std::vector<std::byte>(1 << 20);
  uint32_t key_ = 0;
  int revoked_ = 0;
  bool registered_[2] = {};
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_CORE_ENDS_H_
