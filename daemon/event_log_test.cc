#include "daemon/event_log.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

v1::Event Named(const std::string& kind) {
  v1::Event event;
  event.set_kind(kind);
  return event;
}

TEST(EventLogTest, GivesNumbersAndReadsOn) {
  EventLog log;
  EXPECT_FALSE(log.After(0).has_value());
  EXPECT_EQ(log.Append(Named("a")), 1u);
  EXPECT_EQ(log.Append(Named("b")), 2u);
  EXPECT_EQ(log.After(0)->kind(), "a");
  EXPECT_EQ(log.After(1)->kind(), "b");
  EXPECT_EQ(log.After(1)->sequence(), 2u);
  EXPECT_FALSE(log.After(2).has_value());
  EXPECT_FALSE(log.After(UINT64_MAX).has_value());
}

TEST(EventLogTest, ForgetsTheOldestAndAReaderSeesTheGap) {
  EventLog log(/*most=*/3);
  for (int i = 0; i < 10; ++i) log.Append(Named("e"));
  EXPECT_EQ(log.After(0)->sequence(), 8u);
  EXPECT_EQ(log.After(8)->sequence(), 9u);
  EXPECT_EQ(log.last_sequence(), 10u);
}

TEST(EventLogTest, ListenersHearUntilTheyLeaveAndMayRead) {
  EventLog log;
  uint64_t heard = 0;
  const auto id = log.Listen([&] { heard = log.After(heard)->sequence(); });
  log.Append(Named("a"));
  log.Append(Named("b"));
  EXPECT_EQ(heard, 2u);
  log.Unlisten(id);
  log.Append(Named("c"));
  EXPECT_EQ(heard, 2u);
}

}  // namespace
}  // namespace r2cc::daemon
