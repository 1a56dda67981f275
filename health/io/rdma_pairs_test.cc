#include "health/io/rdma_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/fake_verbs.h"
#include "base/core/verbs/faulty_verbs.h"
#include "base/fake_executor.h"

namespace r2cc::health {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using verbs::Call;
using verbs::Status;

// Counts what is open, and keeps how the last queue pair was made.
class CountingVerbs : public verbs::FaultyVerbs {
 public:
  using FaultyVerbs::FaultyVerbs;
  int Open(const std::string& device, verbs::ContextId* context, int* async_fd) override {
    const int error = FaultyVerbs::Open(device, context, async_fd);
    if (error == 0) ++open;
    return error;
  }
  int Close(verbs::ContextId context) override {
    const int error = FaultyVerbs::Close(context);
    if (error == 0) --open;
    return error;
  }
  int Init(verbs::QueuePairId pair, uint8_t port, uint16_t index, uint32_t access) override {
    pkey_index = index;
    return FaultyVerbs::Init(pair, port, index, access);
  }
  int MakeReadyToReceive(verbs::QueuePairId pair, const verbs::ReadyToReceive& how) override {
    receive = how;
    return FaultyVerbs::MakeReadyToReceive(pair, how);
  }
  int open = 0;
  uint16_t pkey_index = 0;
  verbs::ReadyToReceive receive;
};

class RdmaPairsTest : public testing::Test {
 protected:
  RdmaPairsTest() {
    for (const int host : {0, 1}) fabric_.AddDevice(host, "mlx5_0");
    pairs_ = std::make_unique<RdmaPairs>(&verbs_, &core_, &blocking_);
  }
  void Settle() {
    for (int i = 0; i < 4; ++i) {
      blocking_.RunPosted();
      core_.RunPosted();
    }
  }
  RdmaPairs::Id Make(RdmaPairs* pairs, const RdmaPlace& place, std::optional<RdmaEnd>* end) {
    const RdmaPairs::Id id = pairs->Make(place, 7, [end](RdmaPairs::Id, const std::optional<RdmaEnd>& made) { *end = made; });
    Settle();
    return id;
  }
  bool Connect(RdmaPairs* pairs, RdmaPairs::Id id, const RdmaEnd& peer) {
    bool connected = false;
    pairs->Connect(id, peer, [&](bool done) { connected = done; });
    Settle();
    return connected;
  }

  verbs::FakeTimeline time_;
  verbs::FakeFabric fabric_{&time_};
  verbs::FakeVerbs fake_{&fabric_, 0}, peer_fake_{&fabric_, 1};
  CountingVerbs verbs_{&fake_}, peer_verbs_{&peer_fake_};
  FakeExecutor core_, blocking_;
  std::unique_ptr<RdmaPairs> pairs_;
  RdmaPairs peer_{&peer_verbs_, &core_, &blocking_};
};

TEST_F(RdmaPairsTest, AWriteIsAnsweredByADeviceAloneAndASilentOneFailsInAboutASecond) {
  std::optional<RdmaEnd> own, other;
  const auto id = Make(pairs_.get(), {"mlx5_0", 1, "10.1.0.1"}, &own);
  const auto peer = Make(&peer_, {"mlx5_0", 1, "10.1.1.1"}, &other);
  ASSERT_TRUE(own.has_value() && other.has_value());
  EXPECT_EQ(own->psn, 7u);
  EXPECT_EQ(DecodeRdmaEnd(EncodeRdmaEnd(*own)), own);
  ASSERT_TRUE(Connect(pairs_.get(), id, *other) && Connect(&peer_, peer, *own));

  ASSERT_TRUE(pairs_->Write(id));
  EXPECT_THAT(pairs_->Poll(id), IsEmpty());
  time_.RunFor(kNanosPerMs);
  EXPECT_THAT(pairs_->Poll(id), ElementsAre(Status::kSuccess));

  fabric_.SetSilent({1, "mlx5_0", 1}, true);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pairs_->Write(id));
  time_.RunFor(800 * kNanosPerMs);
  EXPECT_THAT(pairs_->Poll(id), IsEmpty());
  time_.RunFor(400 * kNanosPerMs);
  EXPECT_THAT(pairs_->Poll(id), ElementsAre(Status::kRetryExceeded, Status::kFlushed, Status::kFlushed));
}

// A probe that is marked otherwise than jobs' packets tests another way.
TEST_F(RdmaPairsTest, ProbesAreMarkedAsTheSiteConfigures) {
  RdmaPairs marked(&verbs_, &core_, &blocking_, {.traffic_class = 106, .service_level = 3, .pkey_index = 2});
  std::optional<RdmaEnd> own, other;
  const auto id = Make(&marked, {"mlx5_0", 1, "10.1.0.1"}, &own);
  Make(&peer_, {"mlx5_0", 1, "10.1.1.1"}, &other);
  ASSERT_TRUE(own.has_value() && other.has_value());
  ASSERT_TRUE(Connect(&marked, id, *other));
  EXPECT_EQ(verbs_.pkey_index, 2);
  EXPECT_EQ(verbs_.receive.path.traffic_class, 106);
  EXPECT_EQ(verbs_.receive.path.service_level, 3);
  marked.Drop(id);
  Settle();
}

TEST_F(RdmaPairsTest, ADeviceIsOpenWhileThereIsAPairOnIt) {
  std::optional<RdmaEnd> end;
  const auto first = Make(pairs_.get(), {"mlx5_0", 1, "10.1.0.1"}, &end);
  const auto second = Make(pairs_.get(), {"mlx5_0", 1, "10.1.0.1"}, &end);
  EXPECT_EQ(verbs_.open, 1);
  pairs_->Drop(first);
  Settle();
  EXPECT_EQ(verbs_.open, 1);
  pairs_->Drop(second);
  Settle();
  EXPECT_EQ(verbs_.open, 0);
}

TEST_F(RdmaPairsTest, APairThatIsDroppedWhileItIsMadeIsNotReported) {
  bool called = false;
  const auto id = pairs_->Make({"mlx5_0", 1, "10.1.0.1"}, 7, [&](auto, const auto&) { called = true; });
  pairs_->Drop(id);
  Settle();
  EXPECT_FALSE(called);
  EXPECT_EQ(verbs_.open, 0);
}

TEST_F(RdmaPairsTest, NothingIsLeftOfIt) {
  std::optional<RdmaEnd> end;
  Make(pairs_.get(), {"mlx5_0", 1, "10.1.0.1"}, &end);
  pairs_->Make({"mlx5_0", 1, "10.1.0.1"}, 7, [](auto, const auto&) { FAIL() << "it is gone"; });
  pairs_.reset();
  Settle();
  EXPECT_EQ(verbs_.open, 0);
}

// Each call that may fail, and an address that the port does not have.
TEST_F(RdmaPairsTest, AFailedCreationLeavesNothing) {
  for (const Call call : {Call::kOpen, Call::kCreateCompletionQueue, Call::kCreateQueuePair, Call::kInit}) {
    std::optional<RdmaEnd> end = RdmaEnd();
    verbs_.FailCall(call, 1, ENOMEM);
    Make(pairs_.get(), {"mlx5_0", 1, "10.1.0.1"}, &end);
    EXPECT_FALSE(end.has_value()) << static_cast<int>(call);
    EXPECT_EQ(verbs_.open, 0) << static_cast<int>(call);
  }
  for (const RdmaPlace& place : {RdmaPlace{"mlx5_0", 1, "10.9.9.9"}, RdmaPlace{"mlx5_0", 1, ""}, RdmaPlace{"mlx5_0", 1, "a:b"},
                                 RdmaPlace{"mlx5_0", 9, "10.1.0.1"}, RdmaPlace{"mlx5_9", 1, "10.1.0.1"}}) {
    std::optional<RdmaEnd> end = RdmaEnd();
    Make(pairs_.get(), place, &end);
    EXPECT_FALSE(end.has_value()) << place.device << " " << place.address;
    EXPECT_EQ(verbs_.open, 0);
  }
}

TEST_F(RdmaPairsTest, ADeviceThatIsLostIsLetGoAndUsedAgain) {
  std::optional<RdmaEnd> own, other;
  const auto id = Make(pairs_.get(), {"mlx5_0", 1, "10.1.0.1"}, &own);
  const auto peer = Make(&peer_, {"mlx5_0", 1, "10.1.1.1"}, &other);
  ASSERT_TRUE(Connect(pairs_.get(), id, *other) && Connect(&peer_, peer, *own));
  fabric_.LoseDevice(0, "mlx5_0");
  pairs_->Write(id);
  EXPECT_THAT(pairs_->Poll(id), Each(testing::Ne(Status::kSuccess)));
  pairs_->Drop(id);
  Settle();
  fabric_.RestoreDevice(0, "mlx5_0");
  Make(pairs_.get(), {"mlx5_0", 1, "10.1.0.1"}, &own);
  EXPECT_TRUE(own.has_value());
}

}  // namespace
}  // namespace r2cc::health
