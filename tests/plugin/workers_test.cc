// A socket whose link ends while its worker is at a call.
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

// A worker stands before its call when its rail is lost: what it reads then was placed by nobody, so it comes again by the other rail.
TEST(Workers, BytesOnTheWayAreReplayedAfterTheLossOfARail) {
  const OwnProcess::Environment environment = {{"R2CC_RAILS", "127.0.0.1,127.0.0.2"}, {"R2CC_MODE", "1"},
                                               {"R2CC_SOCKETS_PER_RAIL", "1"},        {"R2CC_BULK_THREADS", "2"},
                                               {"R2CC_FAIL_RAILS", "127.0.0.2@3000"}, {"R2CC_LOG", "info"}};
  OwnProcess process(environment, [] {
    constexpr size_t kLarge = 16 << 20;
    constexpr double kLongerThanTheRailIsUpS = 5;
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    Pair pair = Pair::Open(net.get(), context, 1);
    Pages from(kLarge), to(kLarge);
    FillPattern(1, {from.data(), from.size()});
    HeldCall held({to.data(), to.size()}, "r2cc-bulk", kLongerThanTheRailIsUpS);
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
