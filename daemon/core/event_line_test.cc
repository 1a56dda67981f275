#include "daemon/core/event_line.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

v1::Event Change(v1::NicState from, v1::NicState to, const std::string& reason) {
  v1::Event event;
  event.set_kind("nic-state");
  event.set_node("n1");
  event.set_nic("rail0");
  event.set_from_state(from);
  event.set_to_state(to);
  event.set_message(reason);
  return event;
}

TEST(EventLineTest, NamesTheNicFirst) {
  EXPECT_EQ(EventLine(Change(v1::HEALTHY, v1::FAILED, "link down")), "n1/rail0: HEALTHY -> FAILED: link down");
  v1::Event event;
  event.set_node("n1");
  event.set_message("r2ccd starts");
  EXPECT_EQ(EventLine(event), "r2ccd starts");
}

TEST(EventLineTest, TheMessageIdOfAKindStays) {
  EXPECT_EQ(EventMessageId("nic-state"), "61a3ea54006967fd4a131e81272f0adc");
  EXPECT_NE(EventMessageId("failover"), EventMessageId("nic-state"));
}

TEST(EventLineTest, AFaultIsAWarningAndItsEndIsNot) {
  EXPECT_EQ(EventLevel(Change(v1::HEALTHY, v1::FAILED, "")), Severity::kWarning);
  EXPECT_EQ(EventLevel(Change(v1::HEALTHY, v1::DEGRADED, "")), Severity::kWarning);
  EXPECT_EQ(EventLevel(Change(v1::FAILED, v1::PROVING, "")), Severity::kInfo);
  EXPECT_EQ(EventLevel(Change(v1::PROVING, v1::HEALTHY, "")), Severity::kInfo);
  EXPECT_EQ(EventLevel(Change(v1::PROVING, v1::UNCABLED, "")), Severity::kInfo);
  v1::Event event;
  event.set_kind("peer-lost");
  EXPECT_EQ(EventLevel(event), Severity::kWarning);
  event.set_kind("peer-connected");
  EXPECT_EQ(EventLevel(event), Severity::kInfo);
}

}  // namespace
}  // namespace r2cc::daemon
