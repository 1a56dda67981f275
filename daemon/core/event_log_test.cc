#include "daemon/core/event_log.h"

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

TEST(EventLogTest, ListenersAreNotifiedUntilTheyLeaveAndMayRead) {
  EventLog log;
  uint64_t last = 0;
  const auto id = log.Listen([&] { last = log.After(last)->sequence(); });
  log.Append(Named("a"));
  log.Append(Named("b"));
  EXPECT_EQ(last, 2u);
  log.Unlisten(id);
  log.Append(Named("c"));
  EXPECT_EQ(last, 2u);
}

v1::Event OperatorEvent(const std::string& what) {
  v1::Event event;
  event.set_message(what);
  event.mutable_audit()->set_action(what);
  return event;
}

TEST(EventLogTest, OperatorsEventsAreDisplacedByNobodyElse) {
  EventLog log(/*most=*/4, /*audited_most=*/2);
  log.Append(OperatorEvent("drain"));
  for (int i = 0; i < 100; ++i) log.Append(v1::Event());
  log.Append(OperatorEvent("undrain"));
  log.Append(v1::Event());
  std::vector<uint64_t> numbers;
  for (auto event = log.After(0); event.has_value(); event = log.After(event->sequence())) numbers.push_back(event->sequence());
  EXPECT_EQ(numbers, (std::vector<uint64_t>{1, 99, 100, 101, 102, 103}));
  log.Append(OperatorEvent("weight"));
  EXPECT_EQ(log.After(0)->sequence(), 99u) << "their own places have an end too";
}

TEST(EventLogTest, GivesThoseThatAreWanted) {
  EventLog log;
  for (int i = 0; i < 6; ++i) log.Append(i % 2 == 0 ? OperatorEvent("x") : v1::Event());
  const EventLog::Wanted wanted = [](const v1::Event& event) { return event.has_audit(); };
  EXPECT_EQ(log.After(1, wanted)->sequence(), 3u);
  EXPECT_FALSE(log.After(5, wanted).has_value());
  EXPECT_EQ(log.BeforeLast(2, wanted), 1u);
  EXPECT_EQ(log.BeforeLast(3, wanted), 0u);
  EXPECT_EQ(log.BeforeLast(99, wanted), 0u);
}

TEST(EventLogTest, AFollowerLooksAtEachEventOnce) {
  EventLog log;
  for (int i = 0; i < 100; ++i) log.Append(v1::Event());
  int looks = 0;
  const EventLog::Wanted none = [&looks](const v1::Event&) { return ++looks, false; };
  uint64_t looked = 0;
  EXPECT_FALSE(log.After(looked, none, &looked).has_value());
  EXPECT_EQ(looked, 100u);
  EXPECT_EQ(looks, 100);
  log.Append(v1::Event());
  EXPECT_FALSE(log.After(looked, none, &looked).has_value());
  EXPECT_EQ(looks, 101);
}

TEST(EventLogTest, CountsOnFromFormerRuns) {
  EventLog log(/*most=*/3);
  std::vector<v1::Event> former;
  for (const uint64_t number : {7, 9, 10, 11, 12}) {
    former.push_back(Named("former"));
    former.back().set_sequence(number);
  }
  log.Restore(former, 4711);
  EXPECT_EQ(log.Append(Named("new")), 13u);
  EXPECT_EQ(log.instance(), 4711u);
  EXPECT_EQ(log.After(0)->sequence(), 11u) << "no more than the log holds";
  EXPECT_EQ(log.After(0)->instance(), 4711u);
  EXPECT_EQ(log.After(12)->kind(), "new");
}

// More than a reader looks at in one go, and both kinds in between.
TEST(EventLogTest, ALongLogIsReadInOrder) {
  EventLog log;
  for (int i = 1; i <= 2000; ++i) log.Append(i % 3 == 0 ? OperatorEvent("x") : v1::Event());
  const EventLog::Wanted late = [](const v1::Event& event) { return event.sequence() >= 1500; };
  EXPECT_EQ(log.After(0, late)->sequence(), 1500u);
  EXPECT_EQ(log.After(1500, late)->sequence(), 1501u);
  EXPECT_EQ(log.BeforeLast(400, late), 1600u);
  EXPECT_EQ(log.BeforeLast(501, late), 0u);
  const EventLog::Wanted early = [](const v1::Event& event) { return event.sequence() <= 2; };
  EXPECT_EQ(log.BeforeLast(1, early), 1u);
}

}  // namespace
}  // namespace r2cc::daemon
