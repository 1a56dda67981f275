// How a link ends when its device fails, is slow, or was not looked at.

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

#include "netplugin/transport/verbs/core_ends.h"

namespace r2cc::net::verbs {
namespace {

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
TEST_F(LinkCoreFenced, NewRegistrationsAreOutOfReachOfAnUnendedQueuePair) {
  fabric_.options.reuse_keys = true;
  Begin(8, 1 << 16, 200'000);
  ends_[1].faulty->FailCall(Call::kError, 1, EINVAL);
  ends_[1].faulty->FailCall(Call::kDestroyQueuePair, 1, EINVAL, 1'000);
  const uint32_t before = key_;
  EXPECT_FALSE(ends_[1].core->Close());
  EXPECT_EQ(LateBytes(kNanosPerSecond), 0u);
  EXPECT_EQ(revoked_, 1);
  EXPECT_EQ(key_, before) << "the fake does not do what it is here for";
  EXPECT_LT(took_, 100'000) << "the initiator has sent it all";
}

// In the old domain nothing is reached any more: the other links of the rail end, and begin again in the new one.
TEST_F(LinkCoreFenced, OtherLinksOfTheRailAreNotifiedThatItsDomainIsRevoked) {
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
  const bool internal_error = true;
  for (const Call call : {Call::kError, Call::kReset, Call::kDestroyQueuePair, Call::kDeregister})
    ends_[1].faulty->PretendWhile(call, &internal_error);
  ends_[1].faulty->FailWhile(Call::kQueryPort, &internal_error, EIO);
  EXPECT_FALSE(ends_[1].core->Close());
  time_.RunFor(2 * kNanosPerSecond);
  EXPECT_EQ(ends_[1].closed, std::vector{false});
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("device=mlx5_0"), std::string::npos) << lines_[0];
  ends_[1].faulty->Mend();
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

}  // namespace
}  // namespace r2cc::net::verbs
