// A socket that changes hands while its worker is at a call.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/plugin/kernel_touch.h"
#include "tests/plugin/net_table.h"
#include "tests/plugin/own_process.h"
#include "tests/plugin/pair.h"

namespace r2cc::plugin_test {
namespace {

using abi::Result;

// A worker stands before its call when small messages come by another rail, which end a run of bulk: its socket is taken back. What the
// call reads then belongs to the message.
TEST(Workers, WhatTheLastCallHasReadIsNotLostWhenTheSocketIsTakenBack) {
  // A thread for each rail's arrivals, and each flow on its own rail: the small messages have the other one's.
  const OwnProcess::Environment environment = {{"R2CC_RAILS", "127.0.0.1,127.0.0.2"}, {"R2CC_MODE", "1"},
                                               {"R2CC_SOCKETS_PER_RAIL", "1"},        {"R2CC_BULK_THREADS", "4"},
                                               {"R2CC_BULK_AFTER_BYTES", "1"},        {"R2CC_LOG", "info"}};
  OwnProcess process(environment, [] {
    constexpr size_t kLarge = 16 << 20, kSmall = 1000;
    constexpr int kEndOfARun = 16;     // WorkloadClassifier's
    constexpr double kReceivedS = 20;  // a message that has lost bytes never is
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    Pair bulk = Pair::Open(net.get(), context, 0), small = Pair::Open(net.get(), context, 1);
    Pages from(kLarge), to(kLarge);
    FillPattern(1, {from.data(), from.size()});
    HeldCall held({to.data(), to.size()}, "r2cc-bulk");
    void* const receive = bulk.Receive(to.data(), to.size());
    void* const send = bulk.Send(from.data(), from.size());
    R2CC_MUST(held.WaitUntilHeld());
    for (int i = 0; i < 2 * kEndOfARun; ++i) small.Transfer(static_cast<uint64_t>(i), kSmall, kSmall);
    held.Release();
    R2CC_MUST(Finish(net.get(), receive, kReceivedS) == static_cast<int>(kLarge));
    R2CC_MUST(Finish(net.get(), send, kReceivedS) >= 0);
    R2CC_MUST(HoldsPattern(1, {to.data(), to.size()}));
    bulk.Close();
    small.Close();
    R2CC_MUST(net->Finalize(context) == Result::kSuccess);
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
  EXPECT_NE(process.text().find(" 0 failovers"), std::string::npos) << process.text();
  EXPECT_EQ(process.text().find("garbled"), std::string::npos) << process.text();
}

// A worker stands before its call when its rail is lost: what it reads then was placed by nobody, so it comes again by the other rail.
TEST(Workers, WhatIsOnItsWayWhenARailIsLostIsReplayed) {
  const OwnProcess::Environment environment = {{"R2CC_RAILS", "127.0.0.1,127.0.0.2"},
                                               {"R2CC_MODE", "1"},
                                               {"R2CC_SOCKETS_PER_RAIL", "1"},
                                               {"R2CC_BULK_THREADS", "2"},
                                               {"R2CC_BULK_AFTER_BYTES", "0"},
                                               {"R2CC_FAIL_RAILS", "127.0.0.2@3000"},
                                               {"R2CC_LOG", "info"}};
  OwnProcess process(environment, [] {
    constexpr size_t kLarge = 16 << 20;
    constexpr double kLongerThanTheRailLivesS = 5;
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    Pair pair = Pair::Open(net.get(), context, 1);
    Pages from(kLarge), to(kLarge);
    FillPattern(1, {from.data(), from.size()});
    HeldCall held({to.data(), to.size()}, "r2cc-bulk", kLongerThanTheRailLivesS);
    void* const receive = pair.Receive(to.data(), to.size());
    void* const send = pair.Send(from.data(), from.size());
    R2CC_MUST(held.WaitUntilHeld());
    R2CC_MUST(Finish(net.get(), receive) == static_cast<int>(kLarge));
    R2CC_MUST(Finish(net.get(), send) >= 0);
    R2CC_MUST(HoldsPattern(1, {to.data(), to.size()}));
    R2CC_MUST(KernelFaults() == 0);
    pair.Close();
    R2CC_MUST(net->Finalize(context) == Result::kSuccess);
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
  // "link A/127.0.0.2 -> B/127.0.0.2 given up (CAUSE), N bytes replayed after T us"
  const std::string& text = process.text();
  const size_t given_up = text.find("/127.0.0.2 given up (");
  ASSERT_NE(given_up, std::string::npos) << text;
  EXPECT_GT(std::atoll(text.c_str() + text.find("), ", given_up) + 3), 0) << text;
}

}  // namespace
}  // namespace r2cc::plugin_test
