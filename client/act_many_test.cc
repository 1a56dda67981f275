#include "client/act_many.h"

#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

v1::ListNicsReply Cluster() {
  v1::ListNicsReply list;
  for (const char* node : {"a1", "a2", "b1"}) {
    v1::NodeView* view = list.add_nodes();
    view->set_node(node);
    for (const char* nic : {"rail0", "rail1"}) view->add_nics()->set_name(nic);
  }
  return list;
}

std::string Names(const std::string& node, const std::string& nic) {
  std::string text;
  for (const NicName& name : Matching(Cluster(), node, nic)) text += (text.empty() ? "" : " ") + name.node + "/" + name.nic;
  return text;
}

TEST(ActManyTest, ARailANodeAndALeaf) {
  EXPECT_EQ(Names("*", "rail1"), "a1/rail1 a2/rail1 b1/rail1");
  EXPECT_EQ(Names("rail1", "*"), "a1/rail1 a2/rail1 b1/rail1");
  EXPECT_EQ(Names("a1", "*"), "a1/rail0 a1/rail1");
  EXPECT_EQ(Names("a*", "rail0"), "a1/rail0 a2/rail0");
  EXPECT_EQ(Names("a1", "rail0"), "a1/rail0");
  EXPECT_EQ(Names("c*", "rail0"), "");
  EXPECT_EQ(Names("c", "*"), "");
}

TEST(ActManyTest, QuietIsWithoutJobsOrWithoutBytesForAWhile) {
  v1::NicTraffic traffic;
  EXPECT_TRUE(IsQuiet(traffic)) << "nobody is there";
  traffic.add_jobs("train (pid 7)");
  traffic.set_quiet_ns(1'000'000'000);
  EXPECT_FALSE(IsQuiet(traffic));
  traffic.set_quiet_ns(3'000'000'000);
  EXPECT_TRUE(IsQuiet(traffic));
  traffic.set_quiet_ns(-1);
  EXPECT_TRUE(IsQuiet(traffic)) << "it never moved a byte";
}

}  // namespace
}  // namespace r2cc::client
