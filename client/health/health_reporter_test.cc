#include "client/health/health_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/protobuf/util/message_differencer.h"

namespace r2cc::client {
namespace {

constexpr int64_t kNow = 1'700'000'000'000'000'005;

class HealthReporterTest : public testing::Test {
 protected:
  HealthReporterTest() {
    own_.set_node("n0");
    for (const char* const name : {"rail0", "rail1"}) {
      v1::NicView& nic = *own_.add_nics();
      nic.set_name(name);
      nic.set_pci(std::string("0000:1") + name[4] + ":00.0");
      nic.set_operator_weight_permille(1000);
      nic.set_state(v1::HEALTHY);
    }
  }
  void Set(int nic, v1::NicState state, const std::string& reason = "") {
    own_.mutable_nics(nic)->set_state(state);
    own_.mutable_nics(nic)->set_reason(reason);
  }
  // The events that are reported, and taken.
  std::vector<datamodels::HealthEvent> Events() {
    const datamodels::HealthEvents events = reporter_.Look(own_, kNow);
    reporter_.Delivered();
    return {events.events().begin(), events.events().end()};
  }

  v1::NodeView own_;
  HealthReporter reporter_{""};
};

TEST_F(HealthReporterTest, AStartPublishesEverythingSoThatNothingStaysOpen) {
  const auto events = Events();
  ASSERT_EQ(events.size(), 3u);
  for (const datamodels::HealthEvent& event : events) {
    EXPECT_TRUE(event.ishealthy());
    EXPECT_FALSE(event.isfatal());
    EXPECT_EQ(event.recommendedaction(), datamodels::NONE);
    EXPECT_EQ(event.nodename(), "n0");
  }
  EXPECT_TRUE(Events().empty());
}

TEST_F(HealthReporterTest, AMaskedFaultIsStoredAndClearedWithTheSameEntities) {
  Events();
  Set(1, v1::FAILED, "link down");
  auto events = Events();
  ASSERT_EQ(events.size(), 1u);
  const datamodels::HealthEvent ill = events[0];
  EXPECT_FALSE(ill.ishealthy());
  EXPECT_FALSE(ill.isfatal());
  EXPECT_EQ(ill.processingstrategy(), datamodels::STORE_ONLY);
  EXPECT_EQ(ill.recommendedaction(), datamodels::NONE);
  EXPECT_EQ(ill.message(), "rail1 FAILED: link down");
  EXPECT_EQ(ill.entitiesimpacted(0).entitytype(), "NIC");
  EXPECT_EQ(ill.entitiesimpacted(0).entityvalue(), "0000:11:00.0");
  EXPECT_TRUE(Events().empty()) << "once";
  Set(1, v1::PROVING);
  EXPECT_TRUE(Events().empty()) << "it is not decided";
  Set(1, v1::HEALTHY);
  events = Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].ishealthy());
  EXPECT_EQ(events[0].checkname(), ill.checkname());
  EXPECT_EQ(events[0].entitiesimpacted_size(), 1);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(events[0].entitiesimpacted(0), ill.entitiesimpacted(0)));
  EXPECT_EQ(events[0].processingstrategy(), datamodels::STORE_ONLY);
}

TEST_F(HealthReporterTest, OnlyANodeWithoutACarryingNicIsFatal) {
  Events();
  Set(0, v1::FAILED, "link down");
  EXPECT_EQ(Events().size(), 1u);
  Set(1, v1::FAILED, "link down");
  auto events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_FALSE(events[0].isfatal());
  EXPECT_TRUE(events[1].isfatal());
  EXPECT_EQ(events[1].checkname(), HealthReporter::kNodeCheck);
  EXPECT_EQ(events[1].processingstrategy(), datamodels::EXECUTE_REMEDIATION);
  EXPECT_EQ(events[1].recommendedaction(), datamodels::CONTACT_SUPPORT);
  EXPECT_EQ(events[1].message(), "no NIC carries jobs: rail0 FAILED: link down; rail1 FAILED: link down");
  Set(1, v1::HEALTHY);
  events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(events[1].ishealthy());
  EXPECT_EQ(events[1].entitiesimpacted(0).entityvalue(), "n0");
}

TEST_F(HealthReporterTest, DrillsDrainsAndMissingCablesAreNoFaults) {
  Events();
  Set(0, v1::DRAINED, "drained");
  EXPECT_TRUE(Events().empty());
  Set(0, v1::FAILED, "a drill");
  own_.mutable_nics(0)->set_drill_failed(true);
  EXPECT_TRUE(Events().empty());
  own_.mutable_nics(0)->set_drill_failed(false);
  Set(0, v1::UNCABLED);
  EXPECT_TRUE(Events().empty());
}

TEST_F(HealthReporterTest, AnEventThatWasNotTakenIsSentAgain) {
  Events();
  Set(1, v1::FAILED, "link down");
  EXPECT_EQ(reporter_.Look(own_, kNow).events_size(), 1);
  EXPECT_EQ(Events().size(), 1u);
  Set(1, v1::HEALTHY);
  reporter_.Look(own_, kNow);
  Set(1, v1::FAILED, "link down");
  EXPECT_TRUE(Events().empty()) << "nobody received that it was healthy";
}

TEST_F(HealthReporterTest, ANicThatGoesOrMovesLeavesNothingOpen) {
  Events();
  Set(1, v1::FAILED, "link down");
  Events();
  own_.mutable_nics(1)->set_pci("0000:99:00.0");
  auto events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(events[0].ishealthy());
  EXPECT_EQ(events[0].entitiesimpacted(0).entityvalue(), "0000:11:00.0");
  EXPECT_EQ(events[1].entitiesimpacted(0).entityvalue(), "0000:99:00.0");
  own_.mutable_nics()->RemoveLast();
  events = Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].ishealthy());
  EXPECT_EQ(events[0].entitiesimpacted(0).entityvalue(), "0000:99:00.0");
}

// The numbers that the connector has published, byte for byte.
TEST_F(HealthReporterTest, TheBytesAreThoseOfThePublishedMessages) {
  Events();
  own_.mutable_nics(1)->set_name("r");
  own_.mutable_nics(1)->set_pci("p");
  Set(1, v1::FAILED);
  reporter_.Look(own_, kNow);
  datamodels::HealthEvents events = reporter_.Look(own_, kNow);
  // A NIC that is new, and the end of nothing.
  ASSERT_EQ(events.events_size(), 1);
  using namespace std::string_literals;
  const std::string event = "\x08\x01"s + "\x12\x04r2cc" + "\x1a\x03NIC" + "\x22\x07R2CCNic" + "\x3a\x08r FAILED" + "\x4a\x08R2CC_NIC" +
                            "\x52\x08\x0a\x03NIC\x12\x01p" + "\x5a\x08\x0a\x03nic\x12\x01r" + "\x62\x08\x08\x80\xe2\xcf\xaa\x06\x10\x05" +
                            "\x6a\x02n0" + "\x80\x01\x02"s;
  EXPECT_EQ(events.SerializeAsString(), "\x08\x01\x12"s + static_cast<char>(event.size()) + event);
}

}  // namespace
}  // namespace r2cc::client
