#include "client/jobs/job_seats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kRails = 4;

v1::ListNicsReply Cluster(int nodes) {
  v1::ListNicsReply reply;
  for (int node = 0; node < nodes; ++node) {
    v1::NodeView* const view = reply.add_nodes();
    view->set_node("n" + std::to_string(node));
    for (int rail = 0; rail < kRails; ++rail) {
      v1::NicView* const nic = view->add_nics();
      nic->set_state(v1::HEALTHY);
      nic->set_operator_weight_permille(1000);
    }
  }
  return reply;
}

v1::NicView* Nic(v1::ListNicsReply* reply, int node, int rail) { return reply->mutable_nodes(node)->mutable_nics(rail); }

TEST(JobSeats, HalfOfANodeGetsAPlaceThatMovesHalf) {
  v1::ListNicsReply nics = Cluster(4);
  Nic(&nics, 2, 0)->set_state(v1::FAILED);
  Nic(&nics, 2, 1)->set_operator_weight_permille(0);
  const auto seats = MakeJobSeats({}, nics);
  ASSERT_TRUE(seats.ok()) << seats.status();
  EXPECT_THAT(seats->hosts(), ElementsAre("n2", "n0", "n1", "n3"));
  EXPECT_TRUE(seats->changed());
  EXPECT_EQ(FormatJobSeats(*seats),
            "# n2 has 50 % of its rails\n"
            "# in this order, and with NCCL_ALGO=allreduce:tree, a large all_reduce takes 0.54 of the time of NCCL's own choice\n"
            "n2\nn0\nn1\nn3\n");
}

TEST(JobSeats, AMeasuredShareCountsAsALoss) {
  v1::ListNicsReply nics = Cluster(4);
  for (int rail = 0; rail < kRails; ++rail) Nic(&nics, 1, rail)->set_share_permille(500);
  const auto seats = MakeJobSeats({}, nics);
  ASSERT_TRUE(seats.ok());
  EXPECT_EQ(seats->degraded(0).kept_permille(), 500U);
  EXPECT_EQ(seats->hosts(0), "n1");
}

TEST(JobSeats, WithoutALossOrAGainTheOrderStays) {
  v1::ListNicsReply nics = Cluster(4);
  auto seats = MakeJobSeats({{"n3", "n1", "n2"}, 1}, nics);
  ASSERT_TRUE(seats.ok());
  EXPECT_EQ(FormatJobSeats(*seats), "# all nodes have all their rails: any order will do\nn3\nn1\nn2\n");
  Nic(&nics, 3, 0)->set_state(v1::DRAINED);
  seats = MakeJobSeats({{"n0", "n3", "n2", "n1"}, 1}, nics);
  ASSERT_TRUE(seats.ok());
  EXPECT_EQ(FormatJobSeats(*seats), "# n3 has 75 % of its rails\n# no order gains 3 % for a large all_reduce\nn0\nn3\nn2\nn1\n");
}

TEST(JobSeats, AHostThatIsUnknownOrNamedTwiceIsRefusedByName) {
  const v1::ListNicsReply nics = Cluster(3);
  EXPECT_THAT(MakeJobSeats({{"n0", "n9"}, 8}, nics).status().message(), HasSubstr("'n9'"));
  EXPECT_THAT(MakeJobSeats({{"n0", "n1", "n0"}, 8}, nics).status().message(), HasSubstr("'n0' is named twice"));
  EXPECT_TRUE(MakeJobSeats({}, {}).ok());
}

}  // namespace
}  // namespace r2cc::client
