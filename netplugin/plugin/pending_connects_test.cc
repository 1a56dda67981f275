#include "netplugin/plugin/pending_connects.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

constexpr Nanos kLater = PendingConnects::kAbandonedAfter;

TEST(PendingConnects, ARepeatedConnectGetsTheSameConnection) {
  PendingConnects pending;
  EXPECT_EQ(pending.Take(7), nullptr);
  auto comm = std::make_unique<SendComm>();
  SendComm* const raw = comm.get();
  pending.Put(7, std::move(comm), 0);
  EXPECT_EQ(pending.Take(8), nullptr);
  EXPECT_EQ(pending.Take(7).get(), raw);
  EXPECT_EQ(pending.Take(7), nullptr);
}

// NCCL aborts, and the peer is gone: otherwise the flow keeps the peer for as long as the process runs.
TEST(PendingConnects, AFailedConnectThatNobodyAsksForIsGivenBack) {
  PendingConnects pending;
  for (const uint64_t listener : {1, 2, 3}) pending.Put(listener, std::make_unique<SendComm>(), 0);
  auto failed = pending.Take(2);
  failed->Fail("gone", true);
  pending.Put(2, std::move(failed), 0);
  auto asked = pending.Take(3);
  asked->Fail("gone", true);
  pending.Put(3, std::move(asked), kLater - 1);
  EXPECT_TRUE(pending.TakeAbandoned(kLater - 1).empty());
  EXPECT_EQ(pending.TakeAbandoned(kLater).size(), 1u);
  EXPECT_EQ(pending.Take(2), nullptr);
  EXPECT_NE(pending.Take(1), nullptr) << "it may still be accepted";
  EXPECT_NE(pending.Take(3), nullptr) << "its caller is to hear why";
}

}  // namespace
}  // namespace r2cc::net
