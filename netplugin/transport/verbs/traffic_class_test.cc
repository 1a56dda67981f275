#include "netplugin/transport/verbs/traffic_class.h"

#include <gtest/gtest.h>

namespace r2cc::net::verbs {
namespace {

TEST(TrafficClass, TheFirstThatIsNamedIsTheProcesss) {
  TrafficClass of;
  EXPECT_EQ(of.Named(-1, {}), "");
  EXPECT_EQ(of.Named(106, {}), "");
  EXPECT_EQ(of.For({}).traffic_class, 106);
  EXPECT_EQ(of.For({}).service_level, 106) << "as in NCCL";
  EXPECT_EQ(of.Named(106, {}), "");
  EXPECT_EQ(of.Named(-1, {}), "");
  EXPECT_NE(of.Named(7, {}).find("trafficClass=7 is ignored"), std::string::npos);
  EXPECT_EQ(of.Named(8, {}), "") << "it is said once";
  EXPECT_EQ(of.For({}).traffic_class, 106);
}

TEST(TrafficClass, WithoutOneTheSitesStay) {
  TrafficClass of;
  EXPECT_EQ(of.Named(-1, {}), "");
  EXPECT_FALSE(of.For({}).traffic_class.has_value());
  EXPECT_EQ(of.For({.traffic_class = 5}).traffic_class, 5);
}

TEST(TrafficClass, TheEnvironmentComesFirst) {
  TrafficClass of;
  const SiteSettings both{.traffic_class = 1, .service_level = 2}, one{.traffic_class = 1};
  EXPECT_EQ(of.Named(106, both), "");
  EXPECT_EQ(of.Named(7, both), "") << "none of them would be used";
  EXPECT_EQ(of.Named(104, one), "");
  EXPECT_EQ(of.For(one).traffic_class, 1);
  EXPECT_EQ(of.For(one).service_level, 104);
  EXPECT_EQ(of.For(both).service_level, 2);
}

TEST(TrafficClass, LinksThatAreOpenKeepTheirs) {
  TrafficClass of;
  EXPECT_FALSE(of.For({}).traffic_class.has_value());
  EXPECT_NE(of.Named(106, {}).find("links that open from now on"), std::string::npos);
  EXPECT_EQ(of.For({}).traffic_class, 106);
}

TEST(TrafficClass, AnInvalidClassIsLogged) {
  TrafficClass of;
  EXPECT_NE(of.Named(256, {}).find("want a number from 0 to 255"), std::string::npos);
  EXPECT_FALSE(of.For({}).traffic_class.has_value());
}

}  // namespace
}  // namespace r2cc::net::verbs
