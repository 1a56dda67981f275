#include "netplugin/rails/link_settle.h"

#include <gtest/gtest.h>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

constexpr Nanos kMs = kNanosPerMs;

RailLinkEvent Event(int rail, bool up) {
  RailLinkEvent event;
  event.rail = rail;
  event.up = up;
  return event;
}

// What counts: the rail's number, negative where it is down.
std::vector<int> Take(LinkSettle* settle, const std::vector<RailLinkEvent>& events, Nanos now) {
  std::vector<int> counts;
  for (const RailLinkEvent& event : settle->Take(events, now)) counts.push_back(event.up ? event.rail : -event.rail);
  return counts;
}

using Counts = std::vector<int>;

TEST(LinkSettle, DownCountsAtOnceAndUpWhenItHasStayedSo) {
  LinkSettle settle;
  EXPECT_EQ(Take(&settle, {Event(1, false)}, 0), Counts{-1});
  EXPECT_EQ(Take(&settle, {Event(1, true)}, 5 * kMs), Counts{});
  EXPECT_EQ(Take(&settle, {}, 5 * kMs + tuning::kRailSettle - 1), Counts{});
  EXPECT_EQ(Take(&settle, {}, 5 * kMs + tuning::kRailSettle), Counts{1});
  EXPECT_EQ(Take(&settle, {}, kNanosPerSecond), Counts{}) << "once";
}

TEST(LinkSettle, AnUpThatDoesNotLastNeverCounts) {
  LinkSettle settle;
  EXPECT_EQ(Take(&settle, {Event(1, true), Event(1, false)}, 0), Counts{-1});
  EXPECT_EQ(Take(&settle, {Event(1, true)}, 5 * kMs), Counts{});
  EXPECT_EQ(Take(&settle, {Event(1, false)}, 10 * kMs), Counts{-1});
  EXPECT_EQ(Take(&settle, {}, kNanosPerSecond), Counts{});
}

// Down and up again in one breath, as when its address changes: the wait begins anew, with the newest address.
TEST(LinkSettle, ALinkThatComesUpAgainWaitsAgain) {
  LinkSettle settle;
  RailLinkEvent moved = Event(1, true);
  moved.address.text = "10.0.0.2";
  EXPECT_EQ(Take(&settle, {Event(1, true)}, 0), Counts{});
  EXPECT_EQ(Take(&settle, {Event(1, false), moved}, 15 * kMs), Counts{-1});
  EXPECT_EQ(Take(&settle, {}, tuning::kRailSettle), Counts{});
  const std::vector<RailLinkEvent> counts = settle.Take({}, 15 * kMs + tuning::kRailSettle);
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].address.text, "10.0.0.2");
}

TEST(LinkSettle, RailsWaitEachForItself) {
  LinkSettle settle;
  EXPECT_EQ(Take(&settle, {Event(1, true)}, 0), Counts{});
  EXPECT_EQ(Take(&settle, {Event(2, true)}, 10 * kMs), Counts{});
  EXPECT_EQ(Take(&settle, {Event(3, false)}, 20 * kMs), (Counts{-3, 1}));
  EXPECT_EQ(Take(&settle, {}, 30 * kMs), Counts{2});
}

}  // namespace
}  // namespace r2cc::net
