#include "daemon/core/event_filter.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

v1::Event Of(const std::string& kind, const std::string& node, const std::string& nic = "", int64_t time_ns = 100) {
  v1::Event event;
  event.set_kind(kind);
  event.set_node(node);
  event.set_nic(nic);
  event.set_time_ns(time_ns);
  return event;
}

TEST(EventFilterTest, ARequestWithoutFilterGetsAll) { EXPECT_TRUE(Wanted({}, Of("nic-state", "n0", "rail0"))); }

TEST(EventFilterTest, NodeAndNicAreThoseOfTheEventOrOfItsOtherEnd) {
  v1::EventsRequest request;
  request.set_node("n1");
  EXPECT_TRUE(Wanted(request, Of("nic-state", "n1", "rail0")));
  EXPECT_FALSE(Wanted(request, Of("nic-state", "n0", "rail0")));
  request.set_nic("rail0");
  EXPECT_TRUE(Wanted(request, Of("nic-state", "n1", "rail0")));
  EXPECT_FALSE(Wanted(request, Of("nic-state", "n1", "rail1")));
  EXPECT_FALSE(Wanted(request, Of("peer-lost", "n1")));
  v1::Event failover = Of("failover", "n0", "rail1");
  failover.set_peer_node("n1");
  failover.set_peer_nic("rail0");
  EXPECT_TRUE(Wanted(request, failover));
  request.set_nic("rail1");
  EXPECT_FALSE(Wanted(request, failover)) << "a NIC is one of its own node";
}

TEST(EventFilterTest, KindsAndTime) {
  v1::EventsRequest request;
  request.add_kinds("drill");
  request.add_kinds("operator");
  EXPECT_TRUE(Wanted(request, Of("operator", "n0")));
  EXPECT_FALSE(Wanted(request, Of("nic-state", "n0")));
  request.set_since_ns(100);
  EXPECT_TRUE(Wanted(request, Of("drill", "n0", "", 100)));
  EXPECT_FALSE(Wanted(request, Of("drill", "n0", "", 99)));
}

}  // namespace
}  // namespace r2cc::daemon
