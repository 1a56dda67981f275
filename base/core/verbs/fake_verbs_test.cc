#include "base/core/verbs/fake_verbs.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/core/verbs/fake_pair.h"

namespace r2cc::verbs {
namespace {

using Fake = FakePair;

TEST_F(Fake, WriteWithImmediateComesAfterItsDataAndAfterPlainWritesBeforeIt) {
  for (const bool reorder : {false, true}) {
    Make({.placement_late_one_in = 4, .reorder = reorder});
    Fill(0, std::byte{9});
    Receive(1, 900);
    ASSERT_EQ(Send(SendKind::kWrite, 1, 0, 100'000), 0);
    ASSERT_EQ(Send(SendKind::kWriteWithImmediate, 2, 100'000, 50'000, 0xabcd), 0);
    std::vector<Completion> got;
    while (got.empty() && time_.RunNext()) got = ends_[1].Poll();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].wr_id, 900u);
    EXPECT_EQ(got[0].kind, CompletionKind::kReceiveWriteWithImmediate);
    EXPECT_EQ(got[0].immediate, 0xabcdu);
    EXPECT_EQ(got[0].bytes, 50'000u);  // of the request that carries the immediate alone
    EXPECT_EQ(CountOf(1, std::byte{9}), 150'000u);
    time_.RunFor(kNanosPerMs);
    EXPECT_EQ(ends_[0].Poll().size(), 2u);
  }
}

TEST_F(Fake, SendsComeInOrderAndReadsFetch) {
  Make();
  Receive(1, 1);
  Receive(1, 2);
  std::memcpy(ends_[0].memory.data(), "hello", 5);
  ASSERT_EQ(Send(SendKind::kSend, 5, 0, 5), 0);
  time_.RunFor(kNanosPerMs);
  const auto got = ends_[1].Poll();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].kind, CompletionKind::kReceive);
  EXPECT_EQ(std::memcmp(ends_[1].memory.data() + 1024, "hello", 5), 0);
  Fill(1, std::byte{3});
  ASSERT_EQ(Send(SendKind::kRead, 6, 0, 1000), 0);
  time_.RunFor(kNanosPerMs);
  EXPECT_EQ(ends_[0].Poll().size(), 2u);
  EXPECT_EQ(ends_[0].memory[999], std::byte{3});
}

TEST_F(Fake, RetriesEndAfterTheFormulaAndLaterRequestsAreFlushed) {
  Make();
  fabric_->SetSilent({1, "mlx5_0"}, true);
  ASSERT_EQ(Send(SendKind::kWrite, 1, 0, 100, 0, false), 0);
  ASSERT_EQ(Send(SendKind::kWrite, 2, 0, 100), 0);
  const Nanos since = time_.now();
  std::vector<Completion> got;
  while (got.empty() && time_.RunNext()) got = ends_[0].Poll();
  // (retry_cnt + 1) * 4.096 us * 2^timeout, with (14, 3).
  EXPECT_NEAR(static_cast<double>(time_.now() - since), 4 * 4096.0 * (1 << 14), 1e6);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].wr_id, 1u);
  EXPECT_EQ(got[0].status, Status::kRetryExceeded);
  EXPECT_EQ(got[1].status, Status::kFlushed);
  EXPECT_EQ(got[1].kind, CompletionKind{});  // for requests of all kinds
  QueuePairState state{};
  ASSERT_EQ(ends_[0].verbs->QueryState(ends_[0].pair.id, &state), 0);
  EXPECT_EQ(state, QueuePairState::kError);
}

TEST_F(Fake, AShortSilenceIsSurvived) {
  Make();
  Fill(0, std::byte{4});
  fabric_->SetSilent({0, "mlx5_0"}, true);
  ASSERT_EQ(Send(SendKind::kWrite, 1, 0, 100'000), 0);
  time_.RunFor(100 * kNanosPerMs);
  fabric_->SetSilent({0, "mlx5_0"}, false);
  time_.RunFor(100 * kNanosPerMs);
  const auto got = ends_[0].Poll();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].status, Status::kSuccess);
  EXPECT_EQ(CountOf(1, std::byte{4}), 100'000u);
}

TEST_F(Fake, SoftRoceNeverCountsSevenRetries) {
  for (const char* driver : {"mlx5_core", "rdma_rxe"}) {
    time_ = FakeTimeline();
    fabric_.emplace(&time_);
    for (int host = 0; host < 2; ++host) fabric_->AddDevice(host, "mlx5_0", driver);
    for (int host = 0; host < 2; ++host) MakeEnd(host);
    for (int host = 0; host < 2; ++host) Connect(host, 7);
    fabric_->SetSilent({1, "mlx5_0"}, true);
    ASSERT_EQ(Send(SendKind::kWrite, 1, 0, 100), 0);
    time_.RunFor(60 * kNanosPerSecond);
    EXPECT_EQ(ends_[0].Poll().size(), driver == std::string("rdma_rxe") ? 0u : 1u);
  }
}

TEST_F(Fake, NoReceiveMeansAWait) {
  Make();
  ASSERT_EQ(Send(SendKind::kWriteWithImmediate, 1, 0, 100, 5), 0);
  time_.RunFor(2 * kNanosPerSecond);
  EXPECT_TRUE(ends_[0].Poll().empty());
  Receive(1, 3);
  time_.RunFor(20 * kNanosPerMs);
  EXPECT_EQ(ends_[0].Poll().size(), 1u);
  EXPECT_EQ(ends_[1].Poll().size(), 1u);
}

TEST_F(Fake, WrongKeyEndsBothEnds) {
  Make();
  Receive(1, 1);
  Receive(1, 2);
  const MemoryRegionId region = ends_[1].region.id;
  ASSERT_EQ(ends_[1].verbs->Deregister(region), 0);
  ASSERT_EQ(Send(SendKind::kWrite, 1, 0, 100), 0);
  time_.RunFor(kNanosPerMs);
  ASSERT_EQ(ends_[0].Poll().at(0).status, Status::kRemoteAccess);
  const auto got = ends_[1].Poll();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].status, Status::kRemoteAccess);
  EXPECT_EQ(got[1].status, Status::kFlushed);
}

TEST_F(Fake, UnsignaledRequestsKeepTheirPlaces) {
  Make();
  for (uint64_t i = 0; i < 15; ++i) ASSERT_EQ(Send(SendKind::kWrite, i, 0, 10, 0, false), 0);
  ASSERT_EQ(Send(SendKind::kWrite, 15, 0, 10, 0, true), 0);
  time_.RunFor(kNanosPerMs);
  EXPECT_EQ(Send(SendKind::kWrite, 16, 0, 10), ENOMEM);
  EXPECT_EQ(ends_[0].Poll().size(), 1u);
  EXPECT_EQ(Send(SendKind::kWrite, 16, 0, 10), 0);
}

TEST_F(Fake, PortsSpeakAndGidsMove) {
  Make();
  AsyncEvent event;
  EXPECT_EQ(ends_[1].verbs->ReadAsyncEvent(ends_[1].context, &event), EAGAIN);
  fabric_->SetCarrier({1, "mlx5_0"}, false);
  ASSERT_EQ(ends_[1].verbs->ReadAsyncEvent(ends_[1].context, &event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kPortError);
  EXPECT_EQ(event.port, 1);
  EXPECT_EQ(ends_[0].verbs->ReadAsyncEvent(ends_[0].context, &event), EAGAIN);
  fabric_->SetCarrier({1, "mlx5_0"}, true);
  ASSERT_EQ(ends_[1].verbs->ReadAsyncEvent(ends_[1].context, &event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kPortActive);
  fabric_->RemoveGid({0, "mlx5_0"}, 1);
  ASSERT_EQ(ends_[0].verbs->ReadAsyncEvent(ends_[0].context, &event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kGidChange);
  ASSERT_EQ(Send(SendKind::kWrite, 1, 0, 100), 0);
  time_.RunFor(kNanosPerMs);
  EXPECT_EQ(ends_[0].Poll().at(0).status, Status::kLocalQueuePair);
}

TEST_F(Fake, DestroyHangsWithAnUnacknowledgedEvent) {
  Make();
  fabric_->BreakQueuePair(1, ends_[1].pair.number, AsyncKind::kQueuePairFatal);
  AsyncEvent event;
  ASSERT_EQ(ends_[1].verbs->ReadAsyncEvent(ends_[1].context, &event), 0);
  EXPECT_EQ(ends_[1].verbs->DestroyQueuePair(ends_[1].pair.id), EDEADLK);
  EXPECT_EQ(fabric_->hangs(), 1);
  ends_[1].verbs->AckAsyncEvent(ends_[1].context, event);
  EXPECT_EQ(ends_[1].verbs->DestroyQueuePair(ends_[1].pair.id), 0);
}

TEST_F(Fake, ALostDeviceAnswersNothing) {
  Make();
  ASSERT_EQ(Send(SendKind::kWrite, 1, 0, 100'000), 0);
  fabric_->LoseDevice(1, "mlx5_0");
  AsyncEvent event;
  ASSERT_EQ(ends_[1].verbs->ReadAsyncEvent(ends_[1].context, &event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kDeviceFatal);
  size_t taken = 0;
  std::vector<Completion> some(1);
  EXPECT_EQ(ends_[1].verbs->Poll(ends_[1].queue, some, &taken), EIO);
  EXPECT_EQ(ends_[1].verbs->SetState(ends_[1].pair.id, QueuePairState::kError), EIO);
  int fd = 0;
  ContextId again{};
  EXPECT_EQ(ends_[1].verbs->Open("mlx5_0", &again, &fd), ENODEV);
  fabric_->RestoreDevice(1, "mlx5_0");
  EXPECT_EQ(ends_[1].verbs->Open("mlx5_0", &again, &fd), 0);
  time_.RunFor(kNanosPerSecond);
  EXPECT_EQ(ends_[0].Poll().at(0).status, Status::kRetryExceeded);
}

TEST_F(Fake, AFullCompletionQueueBreaks) {
  Make();
  CompletionQueueId small{};
  QueuePairInfo pair;
  ASSERT_EQ(ends_[0].verbs->CreateCompletionQueue(ends_[0].context, 1, {}, &small), 0);
  ASSERT_EQ(ends_[0].verbs->CreateQueuePair(ends_[0].domain, {small, small, 16, 16, 1, 1, 0}, &pair), 0);
  ASSERT_EQ(ends_[0].verbs->Init(pair.id, 1, 0, 0), 0);
  const ReceiveRequest request{1, {}};
  size_t posted = 0;
  for (int i = 0; i < 2; ++i) ASSERT_EQ(ends_[0].verbs->PostReceive(pair.id, std::span(&request, 1), &posted), 0);
  ASSERT_EQ(ends_[0].verbs->SetState(pair.id, QueuePairState::kError), 0);
  AsyncEvent event;
  ASSERT_EQ(ends_[0].verbs->ReadAsyncEvent(ends_[0].context, &event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kCompletionQueueError);
  EXPECT_EQ(event.completion_queue, small);
}

// ---- which fences let bytes through late ----

TEST_F(Fake, WithoutAFenceBytesComeLate) {
  Make(kLate);
  EXPECT_GT(LateBytes([](End*) { return 0; }), 0u);
}

TEST_F(Fake, ErrorAloneIsNoFence) {
  Make(kLate);
  EXPECT_GT(LateBytes([](End* end) { return end->verbs->SetState(end->pair.id, QueuePairState::kError); }), 0u);
}

TEST_F(Fake, ResetIsAFenceButNotOnSoftRoce) {
  const auto reset = [](End* end) { return end->verbs->SetState(end->pair.id, QueuePairState::kReset); };
  Make(kLate);
  EXPECT_EQ(LateBytes(reset), 0u);
  Make(kLate, "rdma_rxe");
  EXPECT_GT(LateBytes(reset), 0u);
  EXPECT_GT(fabric_->late_placements(), 0);
}

TEST_F(Fake, AFlushedReceiveIsAFence) {
  Make(kLate, "rdma_rxe");
  Receive(1, 1);
  EXPECT_EQ(LateBytes([this](End* end) {
              if (end->verbs->SetState(end->pair.id, QueuePairState::kError) != 0) return -1;
              for (int i = 0; i < 1000; ++i) {
                if (!end->Poll().empty()) return 0;
                time_.RunFor(kNanosPerMs);
              }
              return -1;
            }),
            0u);
}

TEST_F(Fake, DestroyAndDeregistrationAreFences) {
  Make(kLate, "rdma_rxe");
  EXPECT_EQ(LateBytes([](End* end) { return end->verbs->DestroyQueuePair(end->pair.id); }), 0u);
  Make(kLate, "rdma_rxe");
  EXPECT_EQ(LateBytes([](End* end) { return end->verbs->Deregister(end->region.id); }), 0u);
}

// A queue pair that takes the number and the packet numbers of one that was destroyed receives what was sent to that one.
TEST_F(Fake, TheOldNumberReceivesOldPackets) {
  for (const uint32_t psn : {kPsn, kPsn + 1}) {
    Make();
    Fill(0, std::byte{5});
    Fill(1, std::byte{0});
    const uint32_t number = ends_[1].pair.number;
    ASSERT_EQ(ends_[1].verbs->DestroyQueuePair(ends_[1].pair.id), 0);
    ASSERT_EQ(Send(SendKind::kWrite, 1, 0, 100), 0);
    ASSERT_EQ(ends_[1].verbs->CreateQueuePair(ends_[1].domain, {ends_[1].queue, ends_[1].queue, 16, 16, 1, 1, 64}, &ends_[1].pair), 0);
    EXPECT_EQ(ends_[1].pair.number, number);
    ASSERT_EQ(ends_[1].verbs->Init(ends_[1].pair.id, 1, 0, kRemoteWrite), 0);
    std::vector<GidEntry> gids;
    ASSERT_EQ(ends_[0].verbs->QueryGids(ends_[0].context, 1, &gids), 0);
    ReadyToReceive receive{.path = {.gid_index = 1, .remote_gid = gids[0].gid}, .remote_number = ends_[0].pair.number};
    receive.receive_psn = psn;
    receive.mtu_bytes = 1024;
    ASSERT_EQ(ends_[1].verbs->MakeReadyToReceive(ends_[1].pair.id, receive), 0);
    time_.RunFor(kNanosPerSecond);
    EXPECT_EQ(CountOf(1, std::byte{5}), psn == kPsn ? 100u : 0u);
  }
}

}  // namespace
}  // namespace r2cc::verbs
