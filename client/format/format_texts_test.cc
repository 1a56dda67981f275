// Operators' settings, as r2ccctl shows them.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "client/format/format.h"

namespace r2cc::client {
namespace {

using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;
const Style kStyle{.now_ns = 1'735'787'045 * kSecond};

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

TEST(Format, ConfigurationInForce) {
  v1::ConfigReply reply;
  reply.mutable_state()->set_file("/etc/r2cc/r2ccd.textproto");
  reply.mutable_state()->set_read_ns(kStyle.now_ns - 3 * kSecond);
  reply.mutable_state()->add_refused("/etc/r2cc/r2ccd.textproto:3: nice is -20 to 19, not 77");
  reply.mutable_state()->set_refused_ns(kStyle.now_ns - kSecond);
  reply.mutable_state()->add_needs_restart("listen");
  reply.set_text("node: \"n0\"\n");
  EXPECT_EQ(FormatConfig(reply, kStyle),
            "# in force, read 3.0 s ago from /etc/r2cc/r2ccd.textproto\n"
            "# refused 1.0 s ago, what was in force stays: /etc/r2cc/r2ccd.textproto:3: nice is -20 to 19, not 77\n"
            "# waits for a restart of r2ccd: listen\n"
            "node: \"n0\"\n");
  v1::ReloadReply reload;
  EXPECT_EQ(FormatReload(reload, kStyle), "nothing has changed that a running daemon takes\n");
  reload.add_applied("peers: new n3");
  reload.mutable_state()->add_needs_restart("nice");
  EXPECT_EQ(FormatReload(reload, kStyle), "in force: peers: new n3\nwaits for a restart of r2ccd: nice\n");
}

TEST(FormatTexts, ADrainOfOneJob) {
  const auto request = FromText<v1::NicActionRequest>(R"pb(node: "n0" nic: "rail1" action: DRAIN job: "train")pb");
  auto reply = FromText<v1::NicActionReply>(R"pb(changed: true
                                                 jobs: "train (pid 7)"
                                                 nic { name: "rail1" state: HEALTHY drained_jobs: "train" })pb");
  EXPECT_EQ(FormatNicAction(request, reply, {}), "n0/rail1: now drained for job train; touches train (pid 7)\n");
  reply.clear_jobs();
  EXPECT_EQ(FormatNicAction(request, reply, {}), "n0/rail1: now drained for job train; no process of it is attached to n0 now\n");
  auto back = request;
  back.set_action(v1::UNDRAIN);
  reply.set_changed(false);
  EXPECT_EQ(FormatNicAction(back, reply, {}), "n0/rail1: nothing to change, already not drained for job train\n");

  v1::ListNicsReply list;
  v1::NodeView& node = *list.add_nodes();
  node.set_node("n0");
  *node.add_nics() = reply.nic();
  EXPECT_THAT(FormatNics(list, {}), HasSubstr("drained for job train"));
  const auto plan =
      FromText<v1::Plan>(R"pb(nics { node: "n0" nic: "rail1" state: HEALTHY weight_permille: 1000 drained_jobs: "train" })pb");
  EXPECT_THAT(FormatPlan(plan, {}), HasSubstr("drained: n0/rail1 for job train\n"));
}

TEST(FormatTexts, WhyShowsHowLongADrillLasts) {
  auto reply = FromText<v1::ExplainNicReply>(R"pb(node: "n0"
                                                  nic { name: "rail1" state: FAILED drill_failed: true drill_ends_ns: 598000000000 })pb");
  EXPECT_THAT(FormatExplainNic(reply, {}), HasSubstr("set     fail-nic, 9 min 58 s left\n"));
  EXPECT_THAT(FormatExplainNic(reply, {.now_ns = 700 * kSecond}), HasSubstr("set     fail-nic, 0 us left\n"));
  reply.mutable_nic()->set_drill_failed(false);
  EXPECT_THAT(FormatExplainNic(reply, {}), testing::Not(HasSubstr("set ")));
}

TEST(FormatTexts, OtherNodesThatForgotANode) {
  v1::ForgetNodeRequest request;
  request.set_node("n7");
  const auto reply = FromText<v1::ForgetNodeReply>(R"pb(silent_ns: 3000000000
                                                        others: 40
                                                        refused: 3
                                                        pending: 2
                                                        refusals { node: "n1" why: "node n7 is alive" })pb");
  EXPECT_EQ(FormatForgetNode(request, reply),
            "n7 is forgotten; it had sent nothing for 3.0 s; 40 other daemons have forgotten it, too; 2 more are being asked\n"
            "not forgotten on n1: node n7 is alive\n"
            "nor on 2 more\n");
}

TEST(FormatTexts, JobsBeginWithHowManyThereAre) {
  const auto reply = FromText<v1::ListJobsReply>(R"pb(jobs { pid: 7 job: "train" }
                                                      summary { processes: 12 users: 3 bad: 1 })pb");
  EXPECT_THAT(FormatJobs(reply, {}), testing::StartsWith("12 processes of 3 users, 1 of them with trouble; 1 of them fit\n\n"));
  const auto one = FromText<v1::ListJobsReply>(R"pb(jobs { pid: 7 job: "train" }
                                                    summary { processes: 1 users: 1 })pb");
  EXPECT_THAT(FormatJobs(one, {}), testing::StartsWith("1 process of 1 user\n\n"));
}

TEST(FormatTexts, ReleasesAreShownIfThereAreSeveral) {
  auto reply = FromText<v1::StatusReply>(R"pb(summary { releases { release: "0.2.0" nodes: 3 node: "n3" } })pb");
  EXPECT_THAT(FormatStatus(reply, {}), testing::Not(testing::HasSubstr("skew")));
  *reply.mutable_summary() = FromText<v1::ClusterSummary>(R"pb(releases { release: "0.2.0" nodes: 3 node: "n3" }
                                                               releases { release: "0.1.0" nodes: 1 node: "n2" }
                                                               jobs_of_other_releases: 2
                                                               jobs_of_other_releases_on: "n0")pb");
  EXPECT_THAT(FormatStatus(reply, {}),
              testing::HasSubstr("skew    r2ccd 0.2.0 on 3 nodes, 0.1.0 on 1 (n2), 2 processes have plugins of another "
                                 "release than r2ccd (n0: r2ccctl jobs)\n"));
  auto jobs = FromText<v1::ListJobsReply>(R"pb(release: "0.2.0"
                                               jobs { pid: 1 job: "a" release: "0.2.0" }
                                               jobs { pid: 2 job: "b" })pb");
  EXPECT_THAT(FormatJobs(jobs, {}),
              testing::AllOf(testing::HasSubstr("PLUGIN\n"), testing::HasSubstr(" 0.2.0\n"), testing::HasSubstr(" 0.1.0\n")));
  jobs.mutable_jobs(1)->set_release("0.2.0");
  EXPECT_THAT(FormatJobs(jobs, {}), testing::Not(testing::HasSubstr("PLUGIN")));
}

}  // namespace
}  // namespace r2cc::client
