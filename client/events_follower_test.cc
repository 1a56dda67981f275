#include "client/events_follower.h"

#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

v1::Event EventOf(uint64_t instance, uint64_t sequence, int64_t time_ns) {
  v1::Event event;
  event.set_instance(instance);
  event.set_sequence(sequence);
  event.set_time_ns(time_ns);
  return event;
}

v1::EventsRequest First() {
  v1::EventsRequest request;
  request.set_follow(true);
  request.set_last(5);
  request.add_kinds("failover");
  return request;
}

TEST(EventsFollower, GoesOnBehindTheLastEventOfTheSameHistory) {
  EventsFollower follower(First());
  EXPECT_TRUE(follower.IsNews(EventOf(7, 41, 100)));
  EXPECT_TRUE(follower.IsNews(EventOf(7, 42, 100)));
  EXPECT_TRUE(follower.GoesOn(absl::UnavailableError("Socket closed"), 5));
  const v1::EventsRequest next = follower.Next();
  EXPECT_EQ(next.after_sequence(), 42u);
  EXPECT_EQ(next.after_instance(), 7u);
  EXPECT_EQ(next.last(), 0u) << "it would leave out what happened meanwhile";
  EXPECT_EQ(next.kinds(0), "failover");
  EXPECT_TRUE(follower.IsNews(EventOf(7, 43, 90))) << "independent of the wall clock";
}

TEST(EventsFollower, InAnotherHistoryTimeShowsWhatIsNew) {
  for (const uint64_t instance : {7, 0}) {
    EventsFollower follower(First());
    follower.IsNews(EventOf(instance, 42, 100));
    EXPECT_TRUE(follower.GoesOn(absl::CancelledError(), 5));
    EXPECT_EQ(follower.Next().after_sequence(), instance == 0 ? 0u : 42u) << "0.2.0 counts from 1 again";
    EXPECT_FALSE(follower.IsNews(EventOf(instance == 0 ? 0 : 8, 1, 90)));
    EXPECT_FALSE(follower.IsNews(EventOf(instance == 0 ? 0 : 8, 2, 100)));
    EXPECT_TRUE(follower.IsNews(EventOf(instance == 0 ? 0 : 8, 3, 101)));
    EXPECT_TRUE(follower.IsNews(EventOf(instance == 0 ? 0 : 8, 4, 99))) << "from then on everything is";
  }
}

TEST(EventsFollower, ADaemonThatWasNeverThereIsAnError) {
  EventsFollower follower(First());
  EXPECT_FALSE(follower.GoesOn(absl::UnavailableError("r2ccd is not running"), 5));
  EXPECT_TRUE(follower.GoesOn(absl::UnavailableError("Socket closed"), EventsFollower::kFirstNs)) << "it followed, and nothing happened";
  EXPECT_TRUE(follower.GoesOn(absl::UnavailableError("r2ccd is not running"), 5)) << "it is restarted";
  EXPECT_FALSE(follower.GoesOn(absl::PermissionDeniedError("no role VIEW"), 5));
}

}  // namespace
}  // namespace r2cc::client
