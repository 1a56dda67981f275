#include "netplugin/transport/verbs/verbs_port.h"

#include <gtest/gtest.h>

#include "netplugin/transport/verbs/fake_links.h"

namespace r2cc::net::verbs {
namespace {

using VerbsPortTest = FakeLinks;

TEST_F(VerbsPortTest, AnOfferIsAConnection) {
  OpenSend();
  EXPECT_NE(ends_[1].port->Offered(sender_.offers[0]), nullptr);
  EXPECT_EQ(ends_[1].port->Offered({}), nullptr);
  EXPECT_EQ(ends_[1].port->Offered(Encode(RailAddress{})), nullptr) << "a rail's address is no queue pair's";
}

TEST_F(VerbsPortTest, PollLooksAtAllLinks) {
  Connect();
  send_->control()->Queue(frames::RailUp{.rail = 4});
  EXPECT_TRUE(send_->control()->Flush());
  time_.RunFor(kNanosPerMs);
  EXPECT_TRUE(ends_[1].port->Poll());
  ASSERT_EQ(receiver_.frames.size(), 1u);
  EXPECT_EQ(std::get<frames::RailUp>(receiver_.frames[0]).rail, 4u);
}

TEST_F(VerbsPortTest, AClosedLinkIsNotLookedAt) {
  Connect();
  send_->control()->Queue(frames::RailUp{.rail = 4});
  EXPECT_TRUE(send_->control()->Flush());
  time_.RunFor(kNanosPerMs);
  EXPECT_FALSE(recv_->Close());
  EXPECT_TRUE(ends_[1].port->Poll());
  EXPECT_TRUE(receiver_.frames.empty());
}

// Who is no thread of the job's goes to sleep afterwards, and looks once more at what came while the queues were armed.
TEST_F(VerbsPortTest, AThreadThatGoesToSleepMissesNothing) {
  Connect();
  ends_[1].state.jobs_thread = false;
  send_->control()->Queue(frames::RailUp{.rail = 4});
  EXPECT_TRUE(send_->control()->Flush());
  time_.RunFor(kNanosPerMs);
  EXPECT_TRUE(ends_[1].port->Poll());
  EXPECT_EQ(receiver_.frames.size(), 1u);
  EXPECT_TRUE(receiver_.troubles.empty());
}

}  // namespace
}  // namespace r2cc::net::verbs
